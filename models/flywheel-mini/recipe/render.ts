// Conversations as the model reads them: the chat template of this folder, rendered by the same Jinja engine as the
// service. Training text is the whole conversation; a prompt ends where the last reply begins.

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Template } from "@huggingface/jinja";
import type { Conversation } from "./tasks/conversation.ts";

const file = [
  new URL("../chat_template.jinja", import.meta.url),
  new URL("../../chat_template.jinja", import.meta.url),
].find((url) => existsSync(fileURLToPath(url)));
if (file === undefined) throw new Error("chat_template.jinja is missing beside the recipe");
const template = new Template(readFileSync(file, "utf8"));

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
