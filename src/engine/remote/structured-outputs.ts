// Translates a constraint to the `structured_outputs` of a vLLM request. vLLM compiles it again, from the same source.
// Reasoning and tool calls have no field of their own there; a structural tag expresses both. A Flywheel server gets
// them as they are, in `forwarded`, so that it compiles the very same automaton.

import type {
  ConstrainedOutput,
  JsonOptions,
  OutputShape,
  PlainShape,
  ReasoningPrefix,
  ToolCallsShape,
} from "../../grammar/constraint.ts";
import type { JsonValue } from "../../grammar/json-schema/keywords.ts";
import { CALL_SPELLINGS } from "../../grammar/tool-call-spelling.ts";
import { NotExpressible } from "./not-expressible.ts";

type Format = { [key: string]: JsonValue };

/** The `structured_outputs` of a request to vLLM. Throws NotExpressible. */
export function vllmOutputs({ shape, reasoning }: ConstrainedOutput): Record<string, unknown> {
  const answer = shape.kind === "calls_or" ? shape.answer : shape;
  if ("json" in answer) checkOptions(answer.json);
  if (reasoning === null && shape.kind !== "tool_calls" && shape.kind !== "calls_or") return plain(shape);
  const format = reasoning === null ? formatOf(shape) : afterReasoning(reasoning, formatOf(shape));
  return { structural_tag: JSON.stringify({ type: "structural_tag", format }) };
}

/** The `structured_outputs` of a request to a Flywheel server. Tool calls are in `forwarded`: undefined if there are no others. */
export function flywheelOutputs(shape: OutputShape): Record<string, unknown> | undefined {
  if (shape.kind === "tool_calls") return undefined;
  if (shape.kind === "calls_or") return flywheelOutputs(shape.answer);
  if (!("json" in shape)) return plain(shape);
  const { compact, closedObjects, freeOrder, openObjects, whitespacePattern } = shape.json;
  return {
    ...plain(shape),
    disable_any_whitespace: compact,
    disable_additional_properties: closedObjects,
    any_property_order: freeOrder ?? false,
    undeclared_properties: openObjects ?? false,
    whitespace_pattern: whitespacePattern,
  };
}

/** vLLM ignores these fields of a request: some are ours, and it takes others from its command line only. */
function checkOptions({ compact, freeOrder, openObjects, whitespacePattern }: JsonOptions): void {
  const asked = {
    disable_any_whitespace: compact,
    any_property_order: freeOrder === true,
    undeclared_properties: openObjects === true,
    whitespace_pattern: whitespacePattern !== null,
  };
  for (const [field, isSet] of Object.entries(asked)) {
    if (isSet) throw new NotExpressible(`structured_outputs.${field}`);
  }
}

function plain(shape: PlainShape): Record<string, unknown> {
  switch (shape.kind) {
    case "json_object":
      return { json_object: true };
    case "json_schema":
      return { json: shape.schema };
    case "regex":
      return { regex: shape.pattern };
    case "choice":
      return { choice: shape.choices };
    case "grammar":
      return { grammar: shape.source };
    case "structural_tag":
      return { structural_tag: JSON.stringify(shape.tag) };
    default:
      return shape satisfies never;
  }
}

/** The shape as the format of a structural tag. */
function formatOf(shape: OutputShape): Format {
  switch (shape.kind) {
    case "json_object":
      return { type: "json_schema", json_schema: { type: "object" } };
    case "json_schema":
      return { type: "json_schema", json_schema: shape.schema };
    case "regex":
      return { type: "regex", pattern: shape.pattern };
    case "choice":
      return { type: "or", elements: shape.choices.map((value) => ({ type: "const_string", value })) };
    case "grammar":
      return { type: "grammar", grammar: shape.source };
    case "structural_tag": {
      const { format } = shape.tag as Format;
      if (format === undefined) throw new NotExpressible("a structural tag with triggers, after reasoning");
      return format as Format;
    }
    case "tool_calls":
      return toolCalls(shape);
    case "calls_or":
      return { type: "or", elements: [toolCalls(shape.calls), formatOf(shape.answer)] };
    default:
      return shape satisfies never;
  }
}

/** As grammar/tool-call-grammar.ts spells them. */
function toolCalls({ format, tools, parallel }: ToolCallsShape): Format {
  if (format === "pythonic" || format === "glm45") {
    throw new NotExpressible(`tool_choice with calls in the format ${format}`);
  }
  const { first, last, separator, before, after } = CALL_SPELLINGS[format];
  const calls = {
    type: "tags_with_separator",
    tags: tools.map((tool) => ({
      type: "tag",
      begin: before(tool.name),
      content: { type: "json_schema", json_schema: tool.parameters ?? { type: "object", properties: {} } },
      end: after,
    })),
    separator,
    at_least_one: true,
    stop_after_first: !parallel,
  };
  if (first === "") return calls;
  const [start, end] = [first, last].map((value) => ({ type: "const_string", value }));
  return { type: "sequence", elements: [start!, calls, end!] };
}

/** Free text up to the end marker, at most two line breaks, then the output. As grammar/compile.ts does it. */
function afterReasoning({ start, end, mode }: ReasoningPrefix, output: Format): Format {
  const thought = { type: "tag", begin: mode === "open" ? "" : start, content: { type: "any_text" }, end };
  const thenOutput = { type: "sequence", elements: [thought, { type: "regex", pattern: "\\n{0,2}" }, output] };
  return mode === "open" ? thenOutput : { type: "or", elements: [output, thenOutput] };
}
