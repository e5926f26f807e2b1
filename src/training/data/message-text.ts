// One message of a conversation as rendering reads it: its content joined to one text, its thought apart. So what is trained
// from a message's text is what the template would have been given.

import { createReplyParser } from "../../text/create-reply-parser.ts";
import { type ChatMessage as ReadMessage, readMessages } from "../../text/messages.ts";
import { PromptError } from "../../text/prompt-error.ts";
import { reasoningStyle } from "../../text/reasoning/reasoning-style.ts";
import { joined } from "../../text/template/template-messages.ts";
import type { ChatMessage } from "./trajectory.ts";

const style = reasoningStyle("think", null)!;

/** Throws PromptError where chat would; `index`: of the message in its conversation, for the path of the error. */
export function textOf(message: ChatMessage, index: number): string {
  return joined(readAt(message, index));
}

/** A reply in two: its thought, from a field of its own or the beginning of its text ("" without one), and the rest. */
export function thoughtAndAnswer(message: ChatMessage, index: number): { thought: string; answer: string } {
  const read = readAt(message, index);
  const text = joined(read);
  if ((read.reasoning ?? "") !== "") return { thought: read.reasoning!, answer: text };
  const parser = createReplyParser({ reasoning: { style, state: "optional" }, tools: null });
  const parts = [...parser.push(text), ...parser.finish()];
  const join = (wanted: "reasoning" | "content") =>
    parts.map((part) => (part.kind === wanted ? part.text : "")).join("");
  return { thought: join("reasoning"), answer: join("content") };
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
