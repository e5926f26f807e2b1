// Ends a thought that has used up its tokens: from then on the end marker is the only thing that may come. Counts the tokens
// between the start marker and the end marker. A second thought in the same reply is not limited.

export interface ThinkingLimit {
  /** The markers as token ids; neither is empty. */
  startIds: readonly number[];
  endIds: readonly number[];
  /** Tokens between them. */
  maxTokens: number;
  /** The prompt has begun the thought already. */
  open: boolean;
}

export class ThinkingBudget {
  readonly #limit: ThinkingLimit;
  readonly #output: number[] = [];
  /** Tokens since the start marker; null while there is no thought, and once it has ended. */
  #used: number | null;
  #ended = false;

  constructor(limit: ThinkingLimit) {
    this.#limit = limit;
    this.#used = limit.open ? 0 : null;
  }

  /** A token was appended to the output. */
  note(id: number): void {
    if (this.#ended) return;
    this.#output.push(id);
    const { startIds, endIds } = this.#limit;
    if (this.#used === null) {
      if (matchedEnd(this.#output, startIds) === startIds.length) this.#used = 0;
      return;
    }
    this.#used++;
    if (matchedEnd(this.#output, endIds) === endIds.length) {
      this.#ended = true;
      this.#used = null;
    }
  }

  /** The token that must come next; null: any. */
  get forcedId(): number | null {
    const { endIds, maxTokens } = this.#limit;
    if (this.#used === null || this.#used < maxTokens) return null;
    return endIds[matchedEnd(this.#output, endIds)]!;
  }
}

/** How many tokens at the end of `output` are the beginning of `marker`. */
function matchedEnd(output: readonly number[], marker: readonly number[]): number {
  for (let length = Math.min(marker.length, output.length); length > 0; length--) {
    const start = output.length - length;
    if (marker.slice(0, length).every((id, i) => output[start + i] === id)) return length;
  }
  return 0;
}
