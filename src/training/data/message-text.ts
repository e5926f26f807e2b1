// One message of a conversation as rendering reads it: its content joined to one text, its thought apart. So what is trained
// from a message's text is what the template would have been given.

import { type ChatMessage as ReadMessage, readMessages } from "../../text/messages.ts";
import { PromptError } from "../../text/prompt-error.ts";
import { joined } from "../../text/template/template-messages.ts";
import type { ChatMessage } from "./trajectory.ts";

const START = "<think>";
const END = "</think>";

/** Throws PromptError where chat would; `index`: of the message in its conversation, for the path of the error. */
export function textOf(message: ChatMessage, index: number): string {
  return joined(readAt(message, index));
}

/** A reply in two: its thought, from a field of its own or the beginning of its text ("" without one), and the rest. */
export function thoughtAndAnswer(message: ChatMessage, index: number): { thought: string; answer: string } {
  const read = readAt(message, index);
  const text = joined(read);
  if ((read.reasoning ?? "") !== "") return { thought: read.reasoning!, answer: text };
  const start = text.indexOf(START);
  const end = text.indexOf(END);
  if (end < 0 || start < 0 || text.slice(0, start).trim() !== "") return { thought: "", answer: text };
  return {
    thought: withoutBreaks(text.slice(start + START.length, end)),
    answer: text.slice(end + END.length).replace(/^\n+/, ""),
  };
}

/** Line breaks next to the markers belong to neither side. */
function withoutBreaks(text: string): string {
  let [from, to] = [0, text.length];
  while (from < to && text[from] === "\n") from++;
  while (to > from && text[to - 1] === "\n") to--;
  return text.slice(from, to);
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
