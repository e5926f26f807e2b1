// A request of the Responses API → a chat. What a response continues is part of the messages.
import { ServiceError } from "../../errors/service-error.ts";
import type { ChatBody } from "../chat/chat.schema.ts";
import type { ChatRules } from "../chat/chat.validate.ts";
import type { CustomTools } from "../request/custom-tools.ts";
import type { WireMessage } from "../request/message.schema.ts";
import { effortFields } from "../request/reasoning-effort.ts";
import type { ResponsesBody } from "./responses.schema.ts";
import { chatTools } from "./tools.ts";

/** Fields of the chat → fields of this API. */
export const FIELD_NAMES = {
  messages: "input",
  input_tokens: "input",
  input_text: "input",
  type: "input",
  max_tokens: "max_output_tokens",
  max_completion_tokens: "max_output_tokens",
  response_format: "text.format",
  logprobs: "top_logprobs",
};

const LOGPROBS = "message.output_text.logprobs";

export function wantsLogprobs({ include }: ResponsesBody): boolean {
  return include?.includes(LOGPROBS) ?? false;
}

/** `messages`: the whole conversation without the instructions. */
export function chatOf(
  body: ResponsesBody,
  messages: readonly WireMessage[],
  rules: Pick<ChatRules, "extensions">,
): { chat: ChatBody; custom: CustomTools } {
  if (body.background === true) {
    const message = "background: true is not offered: a response runs while its client waits. Use stream: true.";
    throw new ServiceError("invalid_value", message, { param: "background" });
  }
  const { model, seed, top_k, min_p, repetition_penalty, frequency_penalty, presence_penalty, cache_salt } = body;
  const sampling = { seed, top_k, min_p, repetition_penalty, frequency_penalty, presence_penalty, cache_salt };
  const { custom, ...tools } = chatTools(body, rules);
  const chat = {
    ...sampling,
    model,
    messages: body.instructions ? [{ role: "system", content: body.instructions }, ...messages] : [...messages],
    stream: body.stream,
    temperature: body.temperature,
    top_p: body.top_p,
    priority: body.priority,
    max_completion_tokens: body.max_output_tokens,
    parallel_tool_calls: body.parallel_tool_calls,
    ...tools,
    response_format: responseFormat(body),
    ...effortFields(body.reasoning?.effort ?? null, body.chat_template_kwargs ?? undefined),
    logprobs: wantsLogprobs(body),
    top_logprobs: wantsLogprobs(body) ? (body.top_logprobs ?? 0) : 0,
    truncate_prompt_tokens: body.truncation === "auto" ? -1n : null,
    // What training needs has no place in a response.
    return_token_ids: false,
    return_tokens_as_token_ids: false,
  };
  return { chat: withoutAbsent(chat) as ChatBody, custom };
}

function responseFormat({ text }: ResponsesBody): ChatBody["response_format"] {
  const format = text?.format ?? { type: "text" as const };
  if (format.type !== "json_schema") return { type: format.type };
  if (format.schema == null) {
    throw new ServiceError("invalid_value", "text.format of the type json_schema needs a schema.", {
      param: "text.format.schema",
    });
  }
  if (format.name == null) {
    throw new ServiceError("invalid_value", "text.format of the type json_schema needs a name.", {
      param: "text.format.name",
    });
  }
  return {
    type: "json_schema",
    json_schema: { name: format.name, schema: format.schema, strict: format.strict },
  };
}

/** Absent fields stay absent: in a chat some of them differ from null. */
function withoutAbsent(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
