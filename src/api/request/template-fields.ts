// Request fields of chat completions and /tokenize that shape the prompt through the chat template, and their
// conversion for the text layer.
import { type Static, Type } from "typebox";
import type { Config } from "../../config/options.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { ChatInput } from "../../text/prompt.ts";
import { Tool, type WireMessage } from "./message.schema.ts";
import { chatMessages, chatTools } from "./messages.ts";
import { orNull, Variables } from "./schema-parts.ts";

export const templateFields = {
  tools: orNull(Type.Array(Tool), { description: "Shown to the model through the chat template." }),
  documents: orNull(Type.Array(Type.Record(Type.String(), Type.String())), {
    description: "Documents, each with title and text, for templates that use them.",
  }),
  reasoning_effort: orNull(Type.Enum(["low", "medium", "high"]), { description: "Passed to the chat template." }),
  add_generation_prompt: Type.Optional(
    Type.Boolean({ default: true, description: "End the prompt with the opening of an assistant turn." }),
  ),
  continue_final_message: Type.Optional(
    Type.Boolean({
      default: false,
      description: "Leave the last message open and continue it. Needs add_generation_prompt: false.",
    }),
  ),
  chat_template: orNull(Type.String(), { description: "A Jinja template to use instead of the model's." }),
  chat_template_kwargs: orNull(Variables, { description: "Additional template variables." }),
};

const TemplateFields = Type.Object(templateFields);

export type TemplateBody = Static<typeof TemplateFields>;

interface PromptBody extends TemplateBody {
  messages: readonly WireMessage[];
  add_special_tokens?: boolean;
}

/** Throws a PromptError for a message that templates cannot take. `client` is the caller's id. */
export function chatInput(body: PromptBody, client: string): ChatInput {
  return {
    messages: chatMessages(body.messages),
    tools: chatTools(body.tools),
    documents: body.documents ?? null,
    reasoningEffort: body.reasoning_effort ?? null,
    addGenerationPrompt: body.add_generation_prompt ?? true,
    continueFinalMessage: body.continue_final_message ?? false,
    addSpecialTokens: body.add_special_tokens ?? false,
    chatTemplate: body.chat_template ?? null,
    chatTemplateKwargs: body.chat_template_kwargs ?? null,
    client,
  };
}

export function checkContinuation(body: TemplateBody): void {
  if (body.continue_final_message !== true || body.add_generation_prompt === false) return;
  const message =
    "continue_final_message cannot be used together with add_generation_prompt (true by default): " +
    "send add_generation_prompt: false.";
  throw new ServiceError("invalid_combination", message);
}

/** A template may arrive as a field or as a template variable of the same name. */
export function checkTemplateTrust(
  body: TemplateBody,
  { trustRequestChatTemplate }: Pick<Config, "trustRequestChatTemplate">,
): void {
  const bringsOne = (body.chat_template ?? null) !== null || body.chat_template_kwargs?.chat_template !== undefined;
  if (bringsOne && !trustRequestChatTemplate) {
    const message = "This server does not accept chat templates from requests (--trust-request-chat-template).";
    throw new ServiceError("template_refused", message, { param: "chat_template" });
  }
}
