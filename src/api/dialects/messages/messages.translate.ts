// A request of Anthropic's Messages API → a chat.
import { invalidValue } from "../../../errors/service-error.ts";
import { isJsonObject, type JsonObject } from "../../../json/json.ts";
import { functionTool, refuseContent, textAt, type WireMessage, type WireTool } from "../../generation/messages.ts";
import { effortFields } from "../../generation/openai-extensions.ts";
import type { ChatBody } from "../chat/chat.schema.ts";
import type { MessagesBody, PromptBody } from "./messages.schema.ts";

// Messages and content blocks of Anthropic's API → messages of a chat. A message of the user may carry results of tools and a
// text; in a chat these are several messages.

type Content = string | readonly JsonObject[];

type TextPart = { type: "text"; text: string };

const MEDIA = new Map([
  ["image", "this model reads text only"],
  ["document", "send its text in a text block"],
  ["search_result", "send its text in a text block"],
]);

function chatMessages({ system, messages }: Pick<PromptBody, "system" | "messages">): WireMessage[] {
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
    const id = textAt(block.tool_use_id, `${at}.tool_use_id`);
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
        thoughts.push(textAt(block.thinking, `${at}.thinking`));
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
  if (input !== undefined && !isJsonObject(input)) throw refuseContent(`${path}.input`, "expected an object.");
  return {
    id: textAt(block.id, `${path}.id`),
    type: "function",
    function: { name: textAt(block.name, `${path}.name`), arguments: { ...input } },
  };
}

function texts(content: Content, path: string): TextPart[] {
  return blocksOf(content, path).map((block, index) => textPart(block, `${path}.${index}`));
}

function blocksOf(content: unknown, path: string): readonly JsonObject[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content) || !content.every(isJsonObject)) {
    throw refuseContent(path, "expected a string or a list of content blocks.");
  }
  return content;
}

function textPart(block: JsonObject, path: string): TextPart {
  if (block.type === "text") return { type: "text", text: textAt(block.text, `${path}.text`) };
  const why = MEDIA.get(String(block.type)) ?? "use text, thinking, tool_use and tool_result";
  throw refuseContent(path, `blocks of the type ${JSON.stringify(block.type)} are not supported here: ${why}.`);
}

/** Fields of the chat → fields of this API. */
export const FIELD_NAMES = {
  type: "messages",
  input_tokens: "messages",
  input_text: "messages",
  max_completion_tokens: "max_tokens",
  stop: "stop_sequences",
  response_format: "output_config.format",
  thinking_token_budget: "thinking.budget_tokens",
};

/** The fields that make the prompt. `parsesReasoning`: the server tells thinking from the answer. */
export function promptOf(body: PromptBody, parsesReasoning: boolean): ChatBody {
  const messages = chatMessages(body);
  return {
    messages,
    ...(body.model === undefined ? {} : { model: body.model }),
    ...(body.tools == null ? {} : { tools: body.tools.map((tool, index) => readTool(tool, `tools.${index}`)) }),
    ...toolChoice(body),
    ...continuation(messages),
    ...thinking(body, parsesReasoning),
    ...format(body),
  };
}

export function chatOf(body: MessagesBody, parsesReasoning: boolean): ChatBody {
  return {
    ...promptOf(body, parsesReasoning),
    max_completion_tokens: body.max_tokens,
    stop: body.stop_sequences ?? null,
    stream: body.stream ?? false,
    ...(body.priority === undefined ? {} : { priority: body.priority }),
    ...(body.cache_salt == null ? {} : { cache_salt: body.cache_salt }),
    temperature: body.temperature ?? null,
    top_p: body.top_p ?? null,
    top_k: body.top_k ?? null,
    // What training needs has no place in a message.
    logprobs: false,
    return_token_ids: false,
  };
}

function readTool(tool: JsonObject, path: string): WireTool {
  const { type, name, description, input_schema: schema, strict } = tool;
  if (type != null && type !== "custom") {
    const message = `Tools of the type ${JSON.stringify(type)} are not offered here: define a tool with a name and an input_schema.`;
    throw invalidValue(message, path);
  }
  if (typeof name !== "string" || name === "") throw invalidValue("A tool needs a name.", `${path}.name`);
  if (!isJsonObject(schema)) throw invalidValue("A tool needs an input_schema.", `${path}.input_schema`);
  return functionTool(name, { description, parameters: schema, strict });
}

function toolChoice({ tool_choice: choice }: PromptBody): Pick<ChatBody, "tool_choice" | "parallel_tool_calls"> {
  if (choice == null) return {};
  const parallel_tool_calls = choice.disable_parallel_tool_use !== true;
  switch (choice.type) {
    case "auto":
      return { tool_choice: "auto", parallel_tool_calls };
    case "any":
      return { tool_choice: "required", parallel_tool_calls };
    case "none":
      return { tool_choice: "none" };
    case "tool":
      if (choice.name == null) throw invalidValue("tool_choice of the type tool needs a name.", "tool_choice.name");
      return { tool_choice: { type: "function", function: { name: choice.name } }, parallel_tool_calls };
    default:
      throw new Error(`tool_choice ${choice.type satisfies never}`);
  }
}

/** The text of a last message of the assistant is the beginning of the answer. */
function continuation(
  messages: readonly WireMessage[],
): Pick<ChatBody, "continue_final_message" | "add_generation_prompt"> {
  const last = messages.at(-1);
  if (last?.role !== "assistant") return {};
  if (last.tool_calls != null) {
    throw invalidValue("The last message must not end with tool_use: send the results.", "messages");
  }
  return { continue_final_message: true, add_generation_prompt: false };
}

type ThinkingFields = Pick<ChatBody, "thinking_token_budget" | "reasoning_effort" | "chat_template_kwargs">;

function thinking({ thinking, output_config: output }: PromptBody, parsesReasoning: boolean): ThinkingFields {
  const effort = output?.effort ?? null;
  const budget = thinking?.type === "enabled" ? (thinking.budget_tokens ?? null) : null;
  return {
    ...(effort === null ? {} : effortFields(effort, undefined)),
    // A model that does not think stays within every budget.
    ...(budget === null || !parsesReasoning ? {} : { thinking_token_budget: budget }),
    ...(thinking?.type === "disabled" ? { chat_template_kwargs: { enable_thinking: false } } : {}),
    ...(thinking?.type === "enabled" ? { chat_template_kwargs: { enable_thinking: true } } : {}),
  };
}

function format({ output_config: output }: PromptBody): Pick<ChatBody, "response_format"> {
  const schema = output?.format?.schema;
  return schema === undefined
    ? {}
    : { response_format: { type: "json_schema", json_schema: { name: "output", schema } } };
}
