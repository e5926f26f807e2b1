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
  ToolSignature,
} from "../../grammar/constraint.ts";
import type { JsonValue } from "../../grammar/json-schema/keywords.ts";
import { CALL_SPELLINGS, type CallSpelling } from "../../grammar/tool-call-spelling.ts";

// A field that the engine behind a replica has no word for.
export class NotExpressible extends Error {
  override name = "NotExpressible";

  /** `what`: the field, as the user knows it. */
  constructor(what: string) {
    super(what);
  }
}

type Format = { [key: string]: JsonValue };

/** The `structured_outputs` of a request to vLLM. Throws NotExpressible. */
export function vllmOutputs({ shape, reasoning }: ConstrainedOutput): Record<string, unknown> {
  const answer = shape.kind === "calls_or" ? shape.answer : shape;
  if (answer !== null && "json" in answer) checkOptions(answer.json);
  if (reasoning === null && shape.kind !== "tool_calls" && shape.kind !== "calls_or") return plain(shape);
  const format = reasoning === null ? formatOf(shape) : afterReasoning(reasoning, formatOf(shape));
  return { structural_tag: JSON.stringify({ type: "structural_tag", format }) };
}

/** The `structured_outputs` of a request to a Flywheel server. Tool calls are in `forwarded`: undefined if there are no others. */
export function flywheelOutputs(shape: OutputShape): Record<string, unknown> | undefined {
  if (shape.kind === "tool_calls") return undefined;
  if (shape.kind === "calls_or") return shape.answer === null ? undefined : flywheelOutputs(shape.answer);
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
      if (shape.answer === null) return textWithCalls(shape.calls);
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
  const spelling = CALL_SPELLINGS[format];
  const { first, last, separator } = spelling;
  const calls = {
    type: "tags_with_separator",
    tags: tools.map((tool) => callTag(tool, spelling)),
    separator,
    at_least_one: true,
    stop_after_first: !parallel,
  };
  if (first === "") return calls;
  const [start, end] = [first, last].map((value) => ({ type: "const_string", value }));
  return { type: "sequence", elements: [start!, calls, end!] };
}

/** Calls in any text, for formats whose calls all begin with the same mark. */
function textWithCalls({ format, tools, parallel }: ToolCallsShape): Format {
  const spelling = format === "pythonic" || format === "glm45" ? null : CALL_SPELLINGS[format];
  const [mark, other] = spelling?.marks ?? [];
  if (spelling === null || mark === undefined || mark.list !== null || other !== undefined) {
    throw new NotExpressible(`a custom tool with a grammar, with calls in the format ${format}`);
  }
  return {
    type: "triggered_tags",
    triggers: [mark.mark],
    tags: tools.map((tool) => callTag(tool, spelling)),
    at_least_one: false,
    stop_after_first: !parallel,
  };
}

function callTag(tool: ToolSignature, { before, after }: CallSpelling): Format {
  return { type: "tag", begin: before(tool.name), content: argumentsOf(tool), end: after };
}

function argumentsOf({ parameters, input }: ToolSignature): Format {
  if (input?.syntax === "lark") throw new NotExpressible("a custom tool with a Lark grammar");
  const text = { type: "string", ...(input ? { pattern: `^(?:${input.definition})$` } : {}) };
  const schema = input ? { type: "object", properties: { input: text }, required: ["input"] } : parameters;
  return { type: "json_schema", json_schema: schema ?? { type: "object", properties: {} } };
}

/** Free text up to the end marker, at most two line breaks, then the output. As grammar/compile.ts does it. */
function afterReasoning({ start, end, mode }: ReasoningPrefix, output: Format): Format {
  const thought = { type: "tag", begin: mode === "open" ? "" : start, content: { type: "any_text" }, end };
  const thenOutput = { type: "sequence", elements: [thought, { type: "regex", pattern: "\\n{0,2}" }, output] };
  return mode === "open" ? thenOutput : { type: "or", elements: [output, thenOutput] };
}
