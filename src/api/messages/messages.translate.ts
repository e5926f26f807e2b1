// A request of Anthropic's Messages API → a chat.
import { ServiceError } from "../../errors/service-error.ts";
import { isJsonObject, type JsonObject } from "../../json/json.ts";
import type { ChatBody } from "../chat/chat.schema.ts";
import type { WireMessage, WireTool } from "../request/message.schema.ts";
import { effortFields } from "../request/reasoning-effort.ts";
import { chatMessages } from "./blocks.ts";
import type { MessagesBody, PromptBody } from "./messages.schema.ts";

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
    ...(body.tools == null ? {} : { tools: body.tools.map((tool, index) => functionTool(tool, `tools.${index}`)) }),
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
    temperature: body.temperature ?? null,
    top_p: body.top_p ?? null,
    top_k: body.top_k ?? null,
    // What training needs has no place in a message.
    logprobs: false,
    return_token_ids: false,
  };
}

function functionTool(tool: JsonObject, path: string): WireTool {
  const { type, name, description, input_schema: schema, strict } = tool;
  if (type != null && type !== "custom") {
    const message = `Tools of the type ${JSON.stringify(type)} are not offered here: define a tool with a name and an input_schema.`;
    throw refuse(message, path);
  }
  if (typeof name !== "string" || name === "") throw refuse("A tool needs a name.", `${path}.name`);
  if (!isJsonObject(schema)) throw refuse("A tool needs an input_schema.", `${path}.input_schema`);
  return {
    type: "function",
    function: {
      name,
      ...(typeof description === "string" ? { description } : {}),
      parameters: schema,
      ...(typeof strict === "boolean" ? { strict } : {}),
    },
  };
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
      if (choice.name == null) throw refuse("tool_choice of the type tool needs a name.", "tool_choice.name");
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
    throw refuse("The last message must not end with tool_use: send the results.", "messages");
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

function refuse(message: string, param: string): ServiceError {
  return new ServiceError("invalid_value", message, { param });
}
