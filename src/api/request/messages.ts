// Converts parsed messages, tools and tool calls to the form that chat templates see. Content becomes a list of texts,
// arguments become values, reasoning gets one name. Throws a PromptError with the path of a value it cannot convert.

import { ServiceError } from "../../errors/service-error.ts";
import { markNumbers } from "../../json/exact-json.ts";
import type { ChatMessage, ChatTool, ChatToolCall } from "../../text/messages.ts";
import { PromptError } from "../../text/prompt-error.ts";
import { InnerJson } from "../http/json-body.ts";
import type { WireContentPart, WireMessage, WireTool, WireToolCall } from "./message.schema.ts";

/** Part type → the field that holds its text. */
const TEXT_FIELDS = new Map([
  ["text", "text"],
  ["input_text", "text"],
  ["output_text", "text"],
  ["refusal", "refusal"],
  ["thinking", "thinking"],
]);

const MEDIA_TYPES = /^(input_)?(image|audio|video|file)(_url|_pil|_embeds)?$/;

export function chatMessages(messages: readonly WireMessage[]): ChatMessage[] {
  if (messages.length === 0) throw invalid("messages", "There must be at least one message.");
  const inner = new InnerJson();
  return messages.map((message, index) => chatMessage(message, `messages.${index}`, inner));
}

/** `path` locates the message in errors. `inner` reads the arguments of tool calls. */
export function chatMessage(message: WireMessage, path: string, inner = new InnerJson()): ChatMessage {
  const { role, content, name, tool_call_id, tool_calls, tools } = message;
  const reasoning = message.reasoning ?? message.reasoning_content ?? null;
  return {
    role,
    texts: textsOf(content ?? [], `${path}.content`),
    ...(name === undefined ? {} : { name }),
    ...(reasoning === null ? {} : { reasoning }),
    ...(tool_calls?.length
      ? { toolCalls: tool_calls.map((call, i) => chatToolCall(call, `${path}.tool_calls.${i}`, inner)) }
      : {}),
    ...((tool_call_id ?? null) === null ? {} : { toolCallId: tool_call_id! }),
    ...(tools?.length ? { tools: tools.map(chatTool) } : {}),
  };
}

/** null if `tools` is null, absent or empty. */
export function chatTools(tools: readonly WireTool[] | null | undefined): ChatTool[] | null {
  return tools?.length ? tools.map(chatTool) : null;
}

function chatTool({ function: { name, description, parameters, strict } }: WireTool): ChatTool {
  const shown = { name, description: description ?? null, parameters: parameters ?? null };
  return { type: "function", function: strict === undefined ? shown : { ...shown, strict } };
}

function textsOf(content: string | readonly WireContentPart[], path: string): string[] {
  if (typeof content === "string") return [content];
  return content.flatMap((part, index) => textOf(part, `${path}.${index}`) ?? []);
}

/** null if the part's text is null; such parts are skipped. */
function textOf(part: WireContentPart, path: string): string | null {
  if (typeof part === "string") return part;
  const { type } = part;
  const wrongType = (message: string) => new PromptError("invalid_part_type", `${path}.type`, message);
  if (typeof type !== "string") throw wrongType("A content part needs a type, for example text.");
  const field = TEXT_FIELDS.get(type);
  if (field === undefined) {
    const reason = MEDIA_TYPES.test(type) ? "this model reads text only" : "use text";
    throw wrongType(`Content parts of the type ${JSON.stringify(type)} are not supported: ${reason}.`);
  }
  const text = part[field];
  if (text === null || typeof text === "string") return text;
  throw invalid(`${path}.${field}`, `A part of the type ${type} needs a string here.`);
}

function chatToolCall(
  { id, function: { name, arguments: args } }: WireToolCall,
  path: string,
  inner: InnerJson,
): ChatToolCall {
  return {
    ...((id ?? null) === null ? {} : { id: id! }),
    type: "function",
    function: { name, arguments: argumentValues(args ?? "", `${path}.function.arguments`, inner) },
  };
}

/** Clients send JSON text, but templates expect values. Empty text means no arguments. */
function argumentValues(args: string | Record<string, unknown>, path: string, inner: InnerJson): unknown {
  if (args === "") return {};
  if (typeof args !== "string") return args;
  try {
    return inner.parse(args, markNumbers);
  } catch (cause) {
    if (cause instanceof ServiceError) throw invalid(path, cause.message, cause);
    throw invalid(path, "Arguments are not valid JSON.", cause);
  }
}

function invalid(path: string, message: string, cause?: unknown): PromptError {
  return new PromptError("invalid_message", path, message, { cause });
}
