// Ends a thought that has used up its tokens: after that, only the end marker may follow. Counts the tokens between the
// start marker and the end marker. Does not limit a second thought in the same reply.

export interface ThinkingLimit {
  /** The markers as token ids. Neither is empty. */
  startIds: readonly number[];
  endIds: readonly number[];
  /** Most tokens between the markers. */
  maxTokens: number;
  /** Whether the prompt has already begun the thought. */
  open: boolean;
}

export class ThinkingBudget {
  readonly #limit: ThinkingLimit;
  /** The last tokens of the output, as many as the longer marker has. */
  readonly #tail: number[] = [];
  /** Tokens since the start marker; null before the thought and after its end. */
  #used: number | null;
  #ended = false;

  constructor(limit: ThinkingLimit) {
    this.#limit = limit;
    this.#used = limit.open ? 0 : null;
  }

  /** A token was appended to the output. */
  note(id: number): void {
    if (this.#ended) return;
    const { startIds, endIds } = this.#limit;
    this.#tail.push(id);
    if (this.#tail.length > Math.max(startIds.length, endIds.length)) this.#tail.shift();
    if (this.#used === null) {
      if (matchedEnd(this.#tail, startIds) === startIds.length) this.#used = 0;
      return;
    }
    this.#used++;
    if (matchedEnd(this.#tail, endIds) === endIds.length) {
      this.#ended = true;
      this.#used = null;
    }
  }

  /** The token that must come next; null = any. */
  get forcedId(): number | null {
    const { endIds, maxTokens } = this.#limit;
    if (this.#used === null || this.#used < maxTokens) return null;
    return endIds[matchedEnd(this.#tail, endIds)]!;
  }
}

/** How many tokens at the end of `tail` begin `marker`. */
function matchedEnd(tail: readonly number[], marker: readonly number[]): number {
  for (let length = Math.min(marker.length, tail.length); length > 0; length--) {
    const start = tail.length - length;
    if (marker.slice(0, length).every((id, i) => tail[start + i] === id)) return length;
  }
  return 0;
}
