// Some templates put a thought behind the opening of a reply: an empty one, or one that is left open. A reply with a
// thought of its own was not written behind an empty one: its prompt ends before it.

import type { ChatEncoder } from "./chat-encoder.ts";

/** At most this many tokens at the end of a prompt are an empty thought. */
export const EMPTY_THOUGHT = 4;

/** Where the thought at the end of a prompt begins, open or closed; its length when there is none. */
export function thoughtAtEnd(prompt: readonly number[], encoder: ChatEncoder): number {
  const think = encoder.idOf("<think>");
  const opened = think === null ? -1 : prompt.lastIndexOf(think);
  return opened >= 0 && opened >= prompt.length - EMPTY_THOUGHT ? opened : prompt.length;
}

/** The reply goes on with a thought. */
export function endsInThought(prompt: readonly number[], encoder: ChatEncoder): boolean {
  const opened = thoughtAtEnd(prompt, encoder);
  const end = encoder.idOf("</think>");
  return opened < prompt.length && (end === null || prompt.indexOf(end, opened) < 0);
}
