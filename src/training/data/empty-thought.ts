// Some templates close an empty thought behind the opening of a reply. A reply with a thought of its own was not written
// behind that: its prompt ends before it.

import type { ChatEncoder } from "./tokenise.ts";

/** At most this many tokens at the end of a prompt are an empty thought. */
export const EMPTY_THOUGHT = 4;

/** Where the thought at the end of a prompt begins; its length when there is none. */
export function thoughtAtEnd(prompt: readonly number[], encoder: ChatEncoder): number {
  const think = encoder.idOf("<think>");
  const opened = think === null ? -1 : prompt.lastIndexOf(think);
  return opened >= 0 && opened >= prompt.length - EMPTY_THOUGHT ? opened : prompt.length;
}
