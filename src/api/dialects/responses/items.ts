// Items of the Responses API → messages of a chat. One turn of the assistant is several items: reasoning, a message, and a
// function call for each tool. Templates expect them as one message.
import { isJsonObject, type JsonObject } from "../../../json/json.ts";
import { refuseContent, textAt, type WireMessage } from "../../generation/messages.ts";
import { customCall } from "../../generation/openai-extensions.ts";

export type Item = JsonObject;

/** Part type → the field that holds its text. */
const TEXT_PARTS = new Map([
  ["input_text", "text"],
  ["output_text", "text"],
  ["text", "text"],
  ["reasoning_text", "text"],
  ["summary_text", "text"],
  ["refusal", "refusal"],
]);

const MEDIA = /^input_(image|file|audio)$/;
const CUSTOM = new Set<unknown>(["custom_tool_call", "custom_tool_call_output"]);
const CUSTOM_REFUSED = "custom tools need a server that is started with --enable-openai-extensions.";
const ROLES = new Set(["user", "assistant", "system", "developer"]);

/** Adds items to a conversation, in order. */
export class Conversation {
  readonly messages: WireMessage[] = [];
  /** The assistant's turn that the next item may belong to. */
  #turn: WireMessage | null = null;
  readonly #extensions: boolean;

  /** `extensions`: calls of custom tools may be among the items. */
  constructor(extensions: boolean) {
    this.#extensions = extensions;
  }

  add(item: Item, path: string): void {
    const type = item.type ?? "message";
    if (CUSTOM.has(type) && !this.#extensions) throw refuseContent(path, CUSTOM_REFUSED);
    switch (type) {
      case "message":
        this.#message(item, path);
        break;
      case "function_call":
      case "custom_tool_call":
        this.#call(item, path);
        break;
      case "function_call_output":
      case "custom_tool_call_output":
        this.#result(item, path);
        break;
      case "reasoning":
        this.#reasoning(item, path);
        break;
      default:
        throw refuseContent(path, `items of the type ${JSON.stringify(type)} are not supported: ${reason(type)}.`);
    }
  }

  #message(item: Item, path: string): void {
    const { role } = item;
    if (typeof role !== "string" || !ROLES.has(role)) {
      throw refuseContent(path, "a message needs a role: user, assistant, system or developer.");
    }
    const content = textParts(item.content, `${path}.content`);
    if (role !== "assistant") {
      this.#turn = null;
      this.messages.push({ role, content });
      return;
    }
    const turn = this.#turn?.content === null && this.#turn.tool_calls == null ? this.#turn : this.#newTurn();
    turn.content = content;
  }

  #call(item: Item, path: string): void {
    const turn = this.#turn ?? this.#newTurn();
    const id = textAt(item.call_id, `${path}.call_id`);
    const name = textAt(item.name, `${path}.name`);
    turn.tool_calls ??= [];
    if (item.type === "custom_tool_call") {
      turn.tool_calls.push(customCall(id, name, textAt(item.input, `${path}.input`)));
      return;
    }
    const args = readableArguments(textAt(item.arguments, `${path}.arguments`));
    turn.tool_calls.push({ id, type: "function", function: { name, arguments: args } });
  }

  #result(item: Item, path: string): void {
    this.#turn = null;
    const id = textAt(item.call_id, `${path}.call_id`);
    this.messages.push({ role: "tool", content: textParts(item.output, `${path}.output`), tool_call_id: id });
  }

  #reasoning(item: Item, path: string): void {
    const shown = textParts(item.content ?? [], `${path}.content`);
    const parts = shown.length > 0 ? shown : textParts(item.summary ?? [], `${path}.summary`);
    if (parts.length === 0) {
      if ((item.encrypted_content ?? null) === null) return;
      throw refuseContent(path, "encrypted reasoning cannot be read here: leave the item out or send its content.");
    }
    this.#newTurn().reasoning = parts.map(({ text }) => text).join("\n");
  }

  #newTurn(): WireMessage {
    this.#turn = { role: "assistant", content: null };
    this.messages.push(this.#turn);
    return this.#turn;
  }
}

function reason(type: unknown): string {
  if (type === "item_reference") return "the response with this item is not stored here";
  if (typeof type !== "string") return "a type is a string";
  return /_call(_output)?$|^mcp_/.test(type)
    ? "they belong to tools that OpenAI hosts"
    : "use message, function_call, function_call_output or reasoning";
}

function textParts(content: unknown, path: string): { type: "text"; text: string }[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content)) throw refuseContent(path, "expected a string or a list of parts.");
  return content.map((part: unknown, index) => {
    const at = `${path}.${index}`;
    if (!isJsonObject(part)) throw refuseContent(at, "a part is an object.");
    const field = TEXT_PARTS.get(String(part.type));
    if (field === undefined) {
      const why = MEDIA.test(String(part.type)) ? "this model reads text only" : "use input_text or output_text";
      throw refuseContent(at, `parts of the type ${JSON.stringify(part.type)} are not supported: ${why}.`);
    }
    return { type: "text", text: textAt(part[field], `${at}.${field}`) };
  });
}

/**
 * Arguments that the model broke off or garbled are shown to it as none. Agents answer such a call with an error and go on, and a stored
 * one cannot be changed.
 */
function readableArguments(text: string): string {
  try {
    return isJsonObject(JSON.parse(text)) ? text : "{}";
  } catch {
    return "{}";
  }
}

// Items as they are kept: the fields that this server knows, and nothing else that a client sends with them.

/** Longer ids are replaced. OpenAI's have at most 64 characters. */
export const LONGEST_ID = 128;

const STATUSES = new Set<unknown>(["in_progress", "completed", "incomplete"]);

/** `item`: one that a conversation has accepted. */
export function knownFields({ id, type, ...item }: Item): Item {
  const common = { id, type, ...(STATUSES.has(item.status) ? { status: item.status } : {}) };
  switch (type) {
    case "function_call":
      return { ...common, call_id: item.call_id, name: item.name, arguments: item.arguments };
    case "custom_tool_call":
      return { ...common, call_id: item.call_id, name: item.name, input: item.input };
    case "function_call_output":
    case "custom_tool_call_output":
      return { ...common, call_id: item.call_id, output: knownParts(item.output) };
    case "reasoning":
      return {
        ...common,
        summary: knownParts(item.summary ?? []),
        content: knownParts(item.content ?? []),
        encrypted_content: null,
      };
    default:
      return { ...common, role: item.role, content: knownParts(item.content) };
  }
}

function knownParts(content: unknown): unknown {
  if (!Array.isArray(content)) return content;
  return content.filter(isJsonObject).map((part) => {
    const field = TEXT_PARTS.get(String(part.type))!;
    return { type: part.type, [field]: part[field], ...(part.type === "output_text" ? { annotations: [] } : {}) };
  });
}
