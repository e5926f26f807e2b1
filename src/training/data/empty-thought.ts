// Some templates begin a reply with a thought, either empty or left open. A reply that has its own thought was not
// sampled after an empty one, so its prompt ends before the empty thought.

import type { ChatEncoder } from "./chat-encoder.ts";

/** The longest empty thought at the end of a prompt, in tokens. */
export const EMPTY_THOUGHT = 4;

/** Index where the thought at the end of a prompt begins, open or closed; the prompt's length when there is none. */
export function thoughtAtEnd(prompt: readonly number[], encoder: ChatEncoder): number {
  const think = encoder.idOf("<think>");
  const opened = think === null ? -1 : prompt.lastIndexOf(think);
  return opened >= 0 && opened >= prompt.length - EMPTY_THOUGHT ? opened : prompt.length;
}

/** Whether the prompt leaves a thought open. */
export function endsInThought(prompt: readonly number[], encoder: ChatEncoder): boolean {
  const opened = thoughtAtEnd(prompt, encoder);
  const end = encoder.idOf("</think>");
  return opened < prompt.length && (end === null || prompt.indexOf(end, opened) < 0);
}
