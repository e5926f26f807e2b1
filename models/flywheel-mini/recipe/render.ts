// Renders conversations with this model's chat template and the service's own Jinja engine. Training text is the whole
// conversation. A prompt ends where the last reply starts.

import { readFileSync } from "node:fs";
import { Template } from "#template";
import { recipePath } from "./files.ts";
import type { Conversation } from "./tasks/conversation.ts";

const template = new Template(readFileSync(recipePath("../chat_template.jinja"), "utf8"));

/** The whole conversation, including the last reply. */
export function renderTraining(conversation: Conversation): string {
  return render(conversation, conversation.messages, {});
}

/** The conversation up to the last reply, with the generation prompt for thinking on or off. */
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
