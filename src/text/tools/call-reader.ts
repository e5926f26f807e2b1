// Reads one tool call that arrives in pieces. What is given out does not depend on the pieces.

import type { ReplyDelta } from "../reply-parser.ts";

export interface CallProgress {
  /** "refused": not a call, nothing was given out. "done": it ended, or broke off where something else begins. */
  state: "reading" | "done" | "refused";
  deltas: ReplyDelta[];
  /** Text that does not belong to the call: what follows it, or everything if there is no call. */
  left: string;
}

export interface CallReader {
  push(text: string): CallProgress;
  /** The call's name was already given out. */
  readonly committed: boolean;
  /** What was read and not given out. If the reply ends here, it is content. */
  readonly held: string;
}
