// The text of one message, joined as for rendering, and the thought in it. So training from a message's text uses exactly
// the text that the template would get.

import { createReplyParser } from "../../text/create-reply-parser.ts";
import { joinedText } from "../../text/messages.ts";
import { PromptError } from "../../text/prompt-error.ts";
import { reasoningStyle } from "../../text/reasoning/reasoning-style.ts";
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

export function checkReadable({ refusal }: HistoryMessage, index: number): void {
  if (refusal) throw new PromptError("invalid_message", `messages.${index}${refusal.field}`, refusal.reason);
}
