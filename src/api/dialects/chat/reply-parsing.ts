// Which parsers a chat reply goes through, and which shape it is forced into. Reasoning and tool calls depend on the server
// and the request, structured output on the request alone.
import { invalidCombination } from "../../../errors/service-error.ts";
import type {
  Constraint,
  OutputShape,
  ToolCallFormat,
  ToolCallsShape,
  ToolSignature,
} from "../../../grammar/constraint.ts";
import type { JsonValue } from "../../../grammar/json-schema/keywords.ts";
import { CALL_SPELLINGS } from "../../../grammar/tool-call-spelling.ts";
import { plainNumbers } from "../../../json/exact-json.ts";
import { createReplyParser, createThoughtMeter } from "../../../text/create-reply-parser.ts";
import type { ChatPrompt } from "../../../text/prompt.ts";
import { type ReasoningState, type ReasoningStyle, reasoningState } from "../../../text/reasoning.ts";
import type { Tokenizer } from "../../../text/tokenizer-contract.ts";
import { toolMarkers } from "../../../text/tools/tool-format.ts";
import type { WantedShape } from "../../generation/constraint.ts";
import type { GenerationSpec } from "../../generation/generation.ts";
import type { CustomTools } from "../../generation/openai-extensions.ts";
import type { Service } from "../../service.ts";
import type { ChatBody } from "./chat.schema.ts";
import type { ValidatedChat } from "./chat.validate.ts";

/** The parsers that apply to a request, before its prompt is known. */
export interface ReplyParsing {
  reasoning: ReasoningStyle | null;
  /** Thinking was switched off by a template variable. */
  thinkingDisabled: boolean;
  /** null: tool calls stay text. */
  tools: ToolCallFormat | null;
  signatures: ToolSignature[];
  namedTool: boolean;
  /** A shape the output is forced into, before reasoning is taken into account. */
  shape: { shape: OutputShape; param: WantedShape["param"] | "tool_choice" | "tools" } | null;
}

export function replyParsing(service: Service, { body, shape: asked, custom }: ValidatedChat): ReplyParsing {
  const choice = toolChoice(service, body);
  const kwargs = { ...service.text.defaultKwargs, ...body.chat_template_kwargs };
  const namedTool = typeof choice === "object";
  if (namedTool && asked !== null) {
    throw invalidCombination("A named tool_choice cannot be combined with structured output.", "tool_choice");
  }
  const tools = choice === "none" ? null : service.toolFormat;
  const signatures = tools === null ? [] : signaturesOf(body, custom);
  const parallel = body.parallel_tool_calls ?? true;
  const forced =
    tools !== null && choice !== "auto" && choice !== "none" ? toolShape(tools, signatures, parallel, choice) : null;
  const hasGrammar = signatures.some(({ input }) => (input ?? null) !== null);
  const holdsCalls = tools !== null && (asked !== null || hasGrammar);
  const free = holdsCalls ? callsOr(tools, signatures, parallel, asked) : asked;
  return {
    reasoning: service.reasoning,
    thinkingDisabled: kwargs.enable_thinking === false,
    tools,
    signatures,
    namedTool,
    shape: forced === null ? free : { shape: forced, param: "tool_choice" },
  };
}

/** Omitted with tools: "auto" on a server that parses tool calls, "none" on any other. */
function toolChoice(service: Service, body: ChatBody): NonNullable<ChatBody["tool_choice"]> {
  if (body.tool_choice !== undefined && body.tool_choice !== null) return body.tool_choice;
  const hasTools = (body.tools ?? []).length > 0;
  return body.tool_choice === undefined && hasTools && service.toolFormat !== null ? "auto" : "none";
}

function signaturesOf({ tools }: ChatBody, custom: CustomTools): ToolSignature[] {
  return (tools ?? []).map(({ function: { name, parameters } }) => ({
    name,
    parameters: plainNumbers(parameters ?? null) as JsonValue,
    ...(custom.has(name) ? { input: custom.get(name)! } : {}),
  }));
}

function toolShape(
  format: ToolCallFormat,
  signatures: readonly ToolSignature[],
  parallel: boolean,
  choice: "required" | { function: { name: string } },
): ToolCallsShape {
  return {
    kind: "tool_calls",
    format,
    tools: signatures.filter(({ name }) => choice === "required" || name === choice.function.name),
    parallel: parallel && choice === "required",
  };
}

const ANY_OBJECT: JsonValue = { type: "object" };

/**
 * Under "auto", calls beside an answer of the wanted shape, or beside any text where the grammars of custom tools must hold. Of other
 * tools the model only sees the schemas, as it does without. Formats whose calls are not JSON cannot have any arguments: there the
 * schemas hold too, and an answer of a shape stays alone.
 */
function callsOr(
  format: ToolCallFormat,
  signatures: readonly ToolSignature[],
  parallel: boolean,
  asked: WantedShape | null,
): ReplyParsing["shape"] {
  const isJson = format !== "pythonic" && format !== "glm45";
  if (asked !== null && !isJson) return asked;
  const names = isJson ? CALL_SPELLINGS[format].names : null;
  const tools = signatures
    .filter(({ name }) => name !== "" && (names?.test(name) ?? true))
    .map((tool) => (isJson && tool.input === undefined ? { ...tool, parameters: anyArguments(tool) } : tool));
  if (tools.length === 0) return asked;
  const calls = { kind: "tool_calls", format, tools, parallel } as const;
  const shape = { kind: "calls_or", calls, answer: asked?.shape ?? null } as const;
  return { shape, param: asked?.param ?? "tools" };
}

function anyArguments({ parameters }: ToolSignature): JsonValue {
  return parameters === null ? null : ANY_OBJECT;
}

export function stateAfter(parsing: ReplyParsing, prompt: ChatPrompt, continued: boolean): ReasoningState {
  return parsing.reasoning === null
    ? "closed"
    : reasoningState(parsing.reasoning, {
        prompt: prompt.text,
        continued: continued ? prompt.echoText : null,
        disabled: parsing.thinkingDisabled,
      });
}

/** One parser and one meter per choice. */
export function parsersFor(
  { reasoning, tools, signatures, shape }: ReplyParsing,
  state: ReasoningState,
): NonNullable<GenerationSpec["parsers"]> {
  const forced = shape?.param === "tool_choice";
  const exact = forced || shape?.param === "tools";
  const options = {
    reasoning: reasoning === null ? null : { style: reasoning, state },
    tools,
    signatures,
    exact,
    forced,
  };
  return { parser: () => createReplyParser(options), thoughtMeter: () => createThoughtMeter(options) };
}

/** A constraint begins after the reasoning, unless the reasoning is over or not wanted. */
export function constraintFor(
  parsing: ReplyParsing,
  state: ReasoningState,
  wantsReasoning: boolean,
): Constraint | null {
  if (parsing.shape === null) return null;
  const { reasoning } = parsing;
  // A thought that the prompt has opened must end before the answer can begin, even if nobody wants to see it.
  const waits = reasoning !== null && (state === "open" || (state === "optional" && wantsReasoning));
  return { ...parsing.shape, reasoning: waits ? { start: reasoning.start, end: reasoning.end, mode: state } : null };
}

/** Ids of the markers that the parsers look for. They are shown to the parsers even if they are special tokens. */
export function markerTokenIds({ reasoning, tools }: ReplyParsing, tokenizer: Tokenizer): number[] {
  const markers = [
    ...(reasoning === null ? [] : [reasoning.start, reasoning.end]),
    ...(tools === null ? [] : toolMarkers(tools)),
  ];
  return markers.map((marker) => tokenizer.idOf(marker)).filter((id) => id !== null);
}
