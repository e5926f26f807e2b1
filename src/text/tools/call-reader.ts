// Reads one tool call that arrives in pieces. What is given out does not depend on the pieces.

import type { ReplyDelta } from "../reply-parser.ts";

export interface CallProgress {
  /** "refused": not a call, nothing was given out. */
  state: "reading" | "done" | "refused";
  deltas: ReplyDelta[];
  /** Text that does not belong to the call: what follows it, or everything if there is no call. */
  left: string;
}

export interface CallReader {
  push(text: string): CallProgress;
  /** The call's name was already given out. */
  readonly committed: boolean;
  /** What was read so far and not given out. */
  readonly held: string;
}
