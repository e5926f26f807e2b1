// Messages and content blocks of Anthropic's API → messages of a chat. A message of the user may carry results of tools and a
// text; in a chat these are several messages.
import { ServiceError } from "../../errors/service-error.ts";
import { isJsonObject, type JsonObject } from "../../json/json.ts";
import type { WireMessage } from "../request/message.schema.ts";
import type { PromptBody } from "./messages.schema.ts";

type Content = string | readonly JsonObject[];

type TextPart = { type: "text"; text: string };

const MEDIA = new Map([
  ["image", "this model reads text only"],
  ["document", "send its text in a text block"],
  ["search_result", "send its text in a text block"],
]);

export function chatMessages({ system, messages }: Pick<PromptBody, "system" | "messages">): WireMessage[] {
  const chat: WireMessage[] = [];
  if (system != null && system.length > 0) chat.push({ role: "system", content: texts(system, "system") });
  messages.forEach(({ role, content }, index) => {
    const path = `messages.${index}.content`;
    if (role === "assistant") chat.push(assistantMessage(content, path));
    else if (role === "system") chat.push({ role, content: texts(content, path) });
    else chat.push(...userMessages(content, path));
  });
  return chat;
}

/** Results of tools become messages of their own, in the order of the blocks. */
function userMessages(content: Content, path: string): WireMessage[] {
  const messages: WireMessage[] = [];
  let parts: TextPart[] = [];
  const flush = () => {
    if (parts.length > 0) messages.push({ role: "user", content: parts });
    parts = [];
  };
  blocksOf(content, path).forEach((block, index) => {
    const at = `${path}.${index}`;
    if (block.type !== "tool_result") {
      parts.push(textPart(block, at));
      return;
    }
    flush();
    const id = textOf(block.tool_use_id, `${at}.tool_use_id`);
    const result = (block.content ?? []) as Content;
    messages.push({ role: "tool", content: texts(result, `${at}.content`), tool_call_id: id });
  });
  flush();
  return messages.length > 0 ? messages : [{ role: "user", content: "" }];
}

function assistantMessage(content: Content, path: string): WireMessage {
  const message: WireMessage = { role: "assistant", content: null };
  const parts: TextPart[] = [];
  const thoughts: string[] = [];
  blocksOf(content, path).forEach((block, index) => {
    const at = `${path}.${index}`;
    switch (block.type) {
      case "thinking":
        thoughts.push(textOf(block.thinking, `${at}.thinking`));
        return;
      case "redacted_thinking":
        return; // only Anthropic can read it
      case "tool_use":
        message.tool_calls ??= [];
        message.tool_calls.push(toolCall(block, at));
        return;
      default:
        parts.push(textPart(block, at));
    }
  });
  if (parts.length > 0) message.content = parts;
  if (thoughts.length > 0) message.reasoning = thoughts.join("\n");
  return message;
}

function toolCall(block: JsonObject, path: string): NonNullable<WireMessage["tool_calls"]>[number] {
  const { input } = block;
  if (input !== undefined && !isJsonObject(input)) throw refuse(`${path}.input`, "expected an object.");
  return {
    id: textOf(block.id, `${path}.id`),
    type: "function",
    function: { name: textOf(block.name, `${path}.name`), arguments: { ...input } },
  };
}

function texts(content: Content, path: string): TextPart[] {
  return blocksOf(content, path).map((block, index) => textPart(block, `${path}.${index}`));
}

function blocksOf(content: unknown, path: string): readonly JsonObject[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content) || !content.every(isJsonObject)) {
    throw refuse(path, "expected a string or a list of content blocks.");
  }
  return content;
}

function textPart(block: JsonObject, path: string): TextPart {
  if (block.type === "text") return { type: "text", text: textOf(block.text, `${path}.text`) };
  const why = MEDIA.get(String(block.type)) ?? "use text, thinking, tool_use and tool_result";
  throw refuse(path, `blocks of the type ${JSON.stringify(block.type)} are not supported here: ${why}.`);
}

function textOf(value: unknown, path: string): string {
  if (typeof value === "string") return value;
  throw refuse(path, "expected a string.");
}

function refuse(path: string, message: string): ServiceError {
  return new ServiceError("unsupported_content", `${path}: ${message}`, { param: path });
}
