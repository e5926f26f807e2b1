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

// Follows the brackets of a JSON value that arrives in pieces.
export class Brackets {
  /** How many are open. */
  depth = 0;
  /** A tag or the end of a code block came where only JSON can stand. It does not belong to the value. */
  broken = false;
  #inString = false;
  #escaped = false;

  /** Position after the bracket that closes the last open one, or of what breaks the value off, else the end of the text. */
  scan(text: string): number {
    for (let i = 0; i < text.length; i++) {
      const char = text[i]!;
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (char === "\\") this.#escaped = true;
        else if (char === '"') this.#inString = false;
      } else if (char === '"') this.#inString = true;
      else if (char === "{" || char === "[") this.depth++;
      else if (char === "}" || char === "]") {
        this.depth--;
        if (this.depth === 0) return i + 1;
      } else if (char === "<" || char === "`") {
        this.broken = true;
        return i;
      }
    }
    return text.length;
  }
}
