// One message of a conversation as rendering reads it: its content joined to one text, its thought apart. So what is trained
// from a message's text is what the template would have been given.

import { type ChatMessage as ReadMessage, readMessages } from "../../text/messages.ts";
import { PromptError } from "../../text/prompt-error.ts";
import { joined } from "../../text/template/template-messages.ts";
import type { ChatMessage } from "./trajectory.ts";

/** Throws PromptError where chat would; `index`: of the message in its conversation, for the path of the error. */
export function textOf(message: ChatMessage, index: number): string {
  return joined(readAt(message, index));
}

/** Whether the reply has a thought, in a field of its own or at the beginning of its text. */
export function hasThought(message: ChatMessage, index: number): boolean {
  const read = readAt(message, index);
  return (read.reasoning ?? "") !== "" || joined(read).trimStart().startsWith("<think>");
}

function readAt(message: ChatMessage, index: number): ReadMessage {
  try {
    return readMessages([message])[0]!;
  } catch (error) {
    if (!(error instanceof PromptError)) throw error;
    const param = error.param?.replace(/^messages\.0/, `messages.${index}`) ?? null;
    throw new PromptError(error.code, param, error.message, { cause: error });
  }
}
