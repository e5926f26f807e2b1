// Wire schemas for text completions, the older dialect with raw prompts instead of messages.
import { type Static, Type } from "typebox";
import { type Constraint, TOOL_CALL_FORMATS } from "../../../grammar/constraint.ts";
import type { JsonValue } from "../../../grammar/json-schema/keywords.ts";
import type { ThinkingLimit } from "../../../sampling/thinking-budget.ts";
import { readOutputShape, type ShapeFields } from "../../generation/constraint.ts";
import { samplingFields } from "../../generation/fields.schema.ts";
import { checkTokenIds } from "../../generation/limits.ts";
import { PromptLogprobs, Usage } from "../../generation/reply.ts";
import { AnyObject, nullable, orNull } from "../../schema/body.ts";

// What a Flywheel server adds to a text completion when another Flywheel is its engine (engine/remote/). The public
// fields cannot say it exactly: the reasoning before a constraint, forced tool calls, a limit on thoughts.

const Ids = Type.Array(Type.Integer(), { minItems: 1 });
const Tool = Type.Object({
  name: Type.String(),
  parameters: Type.Optional(Type.Unknown()),
  input: orNull(Type.Object({ syntax: Type.Enum(["lark", "regex"]), definition: Type.String() }), {
    description: "Custom tools: what their input must match.",
  }),
});

const Forwarded = Type.Object(
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

const TokenArray = Type.Array(Type.Integer());

export const CompletionRequest = Type.Object(
  {
    prompt: Type.Unsafe<string | string[] | number[] | number[][]>(
      Type.Union([Type.String(), Type.Array(Type.String()), TokenArray, Type.Array(TokenArray)], {
        description: "A string, a list of strings, a list of token ids, or a list of token id lists.",
      }),
    ),
    ...samplingFields,
    max_tokens: orNull(Type.Integer(), { default: 16, description: "Output budget; 0 is allowed only with echo." }),
    logprobs: orNull(Type.Integer(), { description: "Return log probabilities, with the N most likely tokens." }),
    echo: Type.Optional(Type.Boolean({ default: false, description: "Begin the text with the prompt." })),
    suffix: orNull(Type.String(), { description: "Not supported." }),
    forwarded: orNull(Forwarded, {
      description: "From a Flywheel server that uses this one as its engine: what it worked out from a chat request.",
    }),
  },
  { title: "CompletionRequest" },
);

export type CompletionBody = Static<typeof CompletionRequest>;

export const TextLogprobs = Type.Object({
  text_offset: Type.Array(Type.Integer()),
  token_logprobs: Type.Array(nullable(Type.Number())),
  tokens: Type.Array(Type.String()),
  top_logprobs: Type.Array(nullable(Type.Record(Type.String(), Type.Number()))),
});

const Choice = Type.Object(
  {
    index: Type.Integer({ description: "prompt index · n + choice" }),
    text: Type.String(),
    logprobs: nullable(TextLogprobs),
    finish_reason: nullable(Type.String()),
    stop_reason: Type.Union([Type.Integer(), Type.String(), Type.Null()]),
    token_ids: nullable(TokenArray),
    prompt_logprobs: Type.Optional(PromptLogprobs),
    prompt_token_ids: Type.Optional(nullable(TokenArray)),
  },
  { additionalProperties: false },
);

const head = {
  id: Type.String(),
  object: Type.Literal("text_completion"),
  created: Type.Integer(),
  model: Type.String(),
  choices: Type.Array(Choice),
};

export const CompletionReply = Type.Object(
  {
    ...head,
    service_tier: Type.Null(),
    system_fingerprint: nullable(Type.String()),
    usage: Usage,
    kv_transfer_params: nullable(AnyObject),
  },
  { title: "Completion", additionalProperties: false },
);

export const CompletionChunk = Type.Object(
  { ...head, system_fingerprint: Type.Optional(Type.String()), usage: Type.Optional(Usage) },
  { title: "CompletionChunk", additionalProperties: false },
);
