// Token sequences with a mask, built turn by turn by the "extends" rule: a turn whose prompt begins with everything so
// far continues the sequence, any other prompt starts a new one. So a log-probability is only ever trained under the
// prefix it was observed under.

/** ids[i] is trained where mask[i] is 1: position i - 1 predicts it. */
export interface TokenSequence {
  ids: number[];
  mask: (0 | 1)[];
  /** NaN where unknown or not trained. */
  oldLogprobs: number[];
}

export class SequenceBuilder {
  readonly #sequences: TokenSequence[] = [];
  readonly #tooLong = new Set<TokenSequence>();

  /** One prompt and the reply to it; `logprobs` null = not known. */
  turn(prompt: readonly number[], reply: readonly number[], logprobs: readonly number[] | null): void {
    const last = this.#sequences.at(-1);
    const current = last && startsWith(prompt, last.ids) ? last : this.#begin();
    append(current, prompt.slice(current.ids.length), 0, null);
    append(current, reply, 1, logprobs);
    // nothing predicts the first token of a sequence
    current.mask[0] = 0;
    current.oldLogprobs[0] = Number.NaN;
  }

  /**
   * A turn whose prompt begins with these tokens and is longer than anything that can be trained: what follows them does not
   * matter, nor whether it follows the turns before in every token, if those are too long already.
   */
  tooLong(beginning: readonly number[]): void {
    const last = this.#sequences.at(-1);
    const continues = last && (startsWith(beginning, last.ids) || startsWith(last.ids, beginning));
    const current = continues ? last : this.#begin();
    append(current, beginning.slice(current.ids.length), 0, null);
    this.#tooLong.add(current);
  }

  /** The sequences that have something to train. */
  finish(): TokenSequence[] {
    return this.#sequences.filter((sequence) => sequence.mask.includes(1) || this.#tooLong.has(sequence));
  }

  #begin(): TokenSequence {
    const sequence: TokenSequence = { ids: [], mask: [], oldLogprobs: [] };
    this.#sequences.push(sequence);
    return sequence;
  }
}

export function startsWith(ids: readonly number[], prefix: readonly number[]): boolean {
  return prefix.length <= ids.length && prefix.every((id, i) => ids[i] === id);
}

export function tokenCounts(sequences: readonly TokenSequence[]): {
  sequences: number;
  tokens: number;
  trainableTokens: number;
} {
  return {
    sequences: sequences.length,
    tokens: sequences.reduce((sum, { ids }) => sum + ids.length, 0),
    trainableTokens: sequences.reduce((sum, { mask }) => sum + mask.filter((bit) => bit === 1).length, 0),
  };
}

function append(
  sequence: TokenSequence,
  ids: readonly number[],
  mask: 0 | 1,
  logprobs: readonly number[] | null,
): void {
  for (const [i, id] of ids.entries()) {
    sequence.ids.push(id);
    sequence.mask.push(mask);
    sequence.oldLogprobs.push(logprobs?.[i] ?? Number.NaN);
  }
}
