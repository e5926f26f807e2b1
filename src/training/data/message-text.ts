// The text of one message, joined as for rendering, and the thought in it. So training from a message's text uses exactly
// the text that the template would get.

import { createReplyParser } from "../../text/create-reply-parser.ts";
import { joinedText } from "../../text/messages.ts";
import { PromptError } from "../../text/prompt-error.ts";
import { reasoningStyle } from "../../text/reasoning.ts";
import type { ChatEncoder } from "./chat-encoder.ts";
import type { HistoryMessage } from "./trajectory.ts";

const style = reasoningStyle("think", null)!;

/** Throws PromptError where chat would refuse the message. `index`: in its conversation, for the path of the error. */
export function textOf(message: HistoryMessage, index: number): string {
  checkReadable(message, index);
  return joinedText(message);
}

/** Splits a reply into its thought, from a field or the beginning of its text ("" without one), and the rest. */
export function thoughtAndAnswer(message: HistoryMessage, index: number): { thought: string; answer: string } {
  const text = textOf(message, index);
  if ((message.reasoning ?? "") !== "") return { thought: message.reasoning!, answer: text };
  const parser = createReplyParser({ reasoning: { style, state: "optional" }, tools: null });
  const parts = [...parser.push(text), ...parser.finish()];
  const join = (wanted: "reasoning" | "content") =>
    parts.map((part) => (part.kind === wanted ? part.text : "")).join("");
  return { thought: join("reasoning"), answer: join("content") };
}

/** A reply for `encodeText`. The marks of the thought that it begins with are the model's own. */
export async function literalReply(text: string, { literal }: Pick<ChatEncoder, "literal">): Promise<string> {
  const opened = text.indexOf(style.start) + style.start.length;
  const closed = text.indexOf(style.end, opened);
  if (!text.trimStart().startsWith(style.start) || closed < 0) return literal(text);
  const [thought, answer] = [text.slice(opened, closed), text.slice(closed + style.end.length)];
  return text.slice(0, opened) + (await literal(thought)) + style.end + (await literal(answer));
}

export function checkReadable({ refusal }: HistoryMessage, index: number): void {
  if (refusal) throw new PromptError("invalid_message", `messages.${index}${refusal.field}`, refusal.reason);
}
