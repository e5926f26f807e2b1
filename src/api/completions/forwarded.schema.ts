// What a Flywheel server adds to a text completion when another Flywheel is its engine (engine/remote/). The public
// fields cannot say it exactly: the reasoning before a constraint, forced tool calls, a limit on thoughts.
import { type Static, Type } from "typebox";
import { type Constraint, TOOL_CALL_FORMATS } from "../../grammar/constraint.ts";
import type { JsonValue } from "../../grammar/json-schema/keywords.ts";
import type { ThinkingLimit } from "../../sampling/thinking-budget.ts";
import { readOutputShape, type ShapeFields } from "../request/constraint.wire.ts";
import { orNull } from "../request/schema-parts.ts";
import { checkTokenIds } from "../request/token-ids.ts";

const Ids = Type.Array(Type.Integer(), { minItems: 1 });
const Tool = Type.Object({
  name: Type.String(),
  parameters: Type.Optional(Type.Unknown()),
  input: orNull(Type.Object({ syntax: Type.Enum(["lark", "regex"]), definition: Type.String() }), {
    description: "Custom tools: what their input must match.",
  }),
});

export const Forwarded = Type.Object(
  {
    tool_calls: orNull(
      Type.Object({
        format: Type.Enum([...TOOL_CALL_FORMATS]),
        tools: Type.Array(Tool, { minItems: 1 }),
        parallel: Type.Boolean(),
        in_text: Type.Optional(Type.Boolean({ description: "Other text may stand around the calls." })),
      }),
      {
        description: "The output must consist of calls of these tools, or follow the other constraint if there is one.",
      },
    ),
    reasoning: orNull(
      Type.Object({ start: Type.String(), end: Type.String(), mode: Type.Enum(["open", "optional"]) }),
      { description: "The thought that may come before the constrained output." },
    ),
    thinking: orNull(
      Type.Object({ start_ids: Ids, end_ids: Ids, max_tokens: Type.Integer({ minimum: 0 }), open: Type.Boolean() }),
      { description: "A limit on the thought, with its markers as token ids." },
    ),
  },
  { title: "Forwarded" },
);

type ForwardedFields = Static<typeof Forwarded> | null | undefined;

export function completionConstraint(body: ShapeFields & { forwarded?: ForwardedFields }): Constraint | null {
  const wanted = readOutputShape(body);
  const { tool_calls: calls, reasoning } = body.forwarded ?? {};
  if (!calls) return wanted === null ? null : { ...wanted, reasoning: reasoning ?? null };
  const tools = calls.tools.map(({ parameters, ...tool }) => ({
    ...tool,
    parameters: (parameters ?? null) as JsonValue,
  }));
  const forced = { kind: "tool_calls", format: calls.format, tools, parallel: calls.parallel } as const;
  const answer = wanted?.shape ?? null;
  const shape =
    answer === null && calls.in_text !== true ? forced : ({ kind: "calls_or", calls: forced, answer } as const);
  return { shape, param: "forwarded", reasoning: reasoning ?? null };
}

export function forwardedThinking(forwarded: ForwardedFields, vocabSize: number): ThinkingLimit | null {
  const thinking = forwarded?.thinking ?? null;
  if (thinking === null) return null;
  const { start_ids: startIds, end_ids: endIds, max_tokens: maxTokens, open } = thinking;
  checkTokenIds([...startIds, ...endIds], vocabSize, "forwarded");
  return { startIds, endIds, maxTokens, open };
}
