// Conversation messages as clients send them -> one shape for templates. Content becomes a list of texts, tool-call
// arguments become values, reasoning has one name. Unknown fields are left out. What cannot be understood is a
// PromptError with the path of the field. Whether content reaches the template as a string or as parts is decided later.

import { parseExactJson } from "../json/exact-json.ts";
import { isJsonObject, type JsonObject } from "../json/json-object.ts";
import { PromptError } from "./prompt-error.ts";
import { type ChatTool, readTools } from "./template-tools.ts";

export interface ChatMessage {
  role: string;
  /** The texts of the content in order; empty for null or absent content. */
  texts: string[];
  /** false: content was null or absent. */
  hasContent: boolean;
  name?: string;
  reasoning?: string;
  toolCalls?: ChatToolCall[];
  toolCallId?: string;
  /** Of developer messages. */
  tools?: ChatTool[];
}

export interface ChatToolCall {
  id?: string;
  type: "function";
  function: { name: string; arguments: unknown };
}

/** Roles whose content may be null. */
const NULL_CONTENT_ROLES = new Set(["assistant", "function"]);

/** Part type -> the field that holds its text. */
const textFields: Readonly<Record<string, string>> = {
  text: "text",
  input_text: "text",
  output_text: "text",
  refusal: "refusal",
  thinking: "thinking",
};

const MEDIA_TYPES = /^(input_)?(image|audio|video|file)(_url|_pil|_embeds)?$/;

export function readMessages(messages: readonly unknown[]): ChatMessage[] {
  if (messages.length === 0)
    throw new PromptError("invalid_message", "messages", "There must be at least one message.");
  return messages.map((message, index) => readMessage(message, `messages.${index}`));
}

function readMessage(value: unknown, path: string): ChatMessage {
  if (!isJsonObject(value)) throw invalid(path, "A message must be an object.");
  const { role } = value;
  if (typeof role !== "string") throw invalid(`${path}.role`, "A message needs a role, which is a string.");
  const message: ChatMessage = { role, ...readContent(value.content, role, `${path}.content`) };
  if (typeof value.name === "string") message.name = value.name;
  if (role === "assistant") {
    const reasoning = readReasoning(value, path);
    if (reasoning !== null) message.reasoning = reasoning;
    const toolCalls = readToolCalls(value.tool_calls, `${path}.tool_calls`);
    if (toolCalls.length > 0) message.toolCalls = toolCalls;
  }
  if (role === "tool" && typeof value.tool_call_id === "string") message.toolCallId = value.tool_call_id;
  if (role === "developer") {
    const tools = readTools(value.tools, `${path}.tools`);
    if (tools) message.tools = tools;
  }
  return message;
}

function readContent(content: unknown, role: string, path: string): Pick<ChatMessage, "texts" | "hasContent"> {
  if (content === undefined) return { texts: [], hasContent: false };
  if (content === null) {
    if (NULL_CONTENT_ROLES.has(role)) return { texts: [], hasContent: false };
    throw invalid(path, `The content of a message with the role ${JSON.stringify(role)} must not be null.`);
  }
  if (typeof content === "string") return { texts: [content], hasContent: true };
  if (!Array.isArray(content)) throw invalid(path, "Content must be a string or an array of parts.");
  const texts = content.map((part, index) => readPart(part, `${path}.${index}`));
  return { texts: texts.filter((text) => text !== null), hasContent: true };
}

/** null: a text part that says null, which counts for nothing. */
function readPart(part: unknown, path: string): string | null {
  if (typeof part === "string") return part;
  if (!isJsonObject(part)) throw invalid(path, "A content part must be a string or an object.");
  const { type } = part;
  const wrongType = (message: string) => new PromptError("invalid_part_type", `${path}.type`, message);
  if (typeof type !== "string") throw wrongType("A content part needs a type, for example text.");
  const field = Object.hasOwn(textFields, type) ? textFields[type]! : null;
  if (field === null) {
    const reason = MEDIA_TYPES.test(type) ? "this model reads text only" : "use text";
    throw wrongType(`Content parts of the type ${JSON.stringify(type)} are not supported: ${reason}.`);
  }
  const text = part[field];
  if (text === null) return null;
  if (typeof text !== "string") throw invalid(`${path}.${field}`, `A part of the type ${type} needs a string here.`);
  return text;
}

function readReasoning(message: JsonObject, path: string): string | null {
  const field = message.reasoning != null ? "reasoning" : "reasoning_content";
  const value = message[field] ?? null;
  if (value !== null && typeof value !== "string") throw invalid(`${path}.${field}`, "Reasoning must be a string.");
  return value;
}

function readToolCalls(calls: unknown, path: string): ChatToolCall[] {
  if (calls == null) return [];
  if (!Array.isArray(calls)) throw invalid(path, "tool_calls must be an array.");
  return calls.map((call, index) => readToolCall(call, `${path}.${index}`));
}

function readToolCall(call: unknown, path: string): ChatToolCall {
  if (!isJsonObject(call)) throw invalid(path, "A tool call must be an object.");
  if (call.type != null && call.type !== "function")
    throw invalid(`${path}.type`, "Only function calls are supported.");
  if (!isJsonObject(call.function)) throw invalid(`${path}.function`, "A tool call needs a function.");
  const { name } = call.function;
  if (typeof name !== "string") throw invalid(`${path}.function.name`, "A tool call needs the name of its function.");
  const args = readArguments(call.function.arguments, `${path}.function.arguments`);
  const id = typeof call.id === "string" ? { id: call.id } : {};
  return { ...id, type: "function", function: { name, arguments: args } };
}

/** Templates expect values, clients send JSON text; nothing at all means no arguments. */
function readArguments(args: unknown, path: string): unknown {
  if (args == null || args === "") return {};
  if (typeof args === "object") return args;
  if (typeof args !== "string") throw invalid(path, "Arguments must be JSON text or an object.");
  try {
    return parseExactJson(args);
  } catch (cause) {
    throw new PromptError("invalid_message", path, "Arguments are not valid JSON.", { cause });
  }
}

function invalid(path: string, message: string): PromptError {
  return new PromptError("invalid_message", path, message);
}
