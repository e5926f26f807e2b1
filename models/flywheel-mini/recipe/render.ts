// Conversations as the model reads them: the chat template of this folder, rendered by the same Jinja engine as the
// service. Training text is the whole conversation; a prompt ends where the last reply begins.

import { readFileSync } from "node:fs";
import { Template } from "@huggingface/jinja";
import { recipePath } from "./files.ts";
import type { Conversation } from "./tasks/conversation.ts";

const template = new Template(readFileSync(recipePath("../chat_template.jinja"), "utf8"));

/** Everything, the last reply included. */
export function renderTraining(conversation: Conversation): string {
  return render(conversation, conversation.messages, {});
}

/** Up to the last reply, with the generation prompt for the conversation's kind of thinking. */
export function renderPrompt(conversation: Conversation): string {
  return render(conversation, conversation.messages.slice(0, -1), {
    add_generation_prompt: true,
    enable_thinking: conversation.thinking === true,
  });
}

function render(
  conversation: Conversation,
  messages: Conversation["messages"],
  extra: Record<string, unknown>,
): string {
  return template.render({ messages, tools: conversation.tools, documents: conversation.documents, ...extra });
}
