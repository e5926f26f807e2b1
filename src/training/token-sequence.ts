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

  /** One prompt and the reply to it; `logprobs` null = not known. */
  turn(prompt: readonly number[], reply: readonly number[], logprobs: readonly number[] | null): void {
    let current = this.#sequences.at(-1);
    if (current === undefined || !startsWith(prompt, current.ids)) {
      current = { ids: [], mask: [], oldLogprobs: [] };
      this.#sequences.push(current);
    }
    append(current, prompt.slice(current.ids.length), 0, null);
    append(current, reply, 1, logprobs);
    // nothing predicts the first token of a sequence
    current.mask[0] = 0;
    current.oldLogprobs[0] = Number.NaN;
  }

  /** The sequences that have something to train. */
  finish(): TokenSequence[] {
    return this.#sequences.filter(({ mask }) => mask.includes(1));
  }
}

export function startsWith(ids: readonly number[], prefix: readonly number[]): boolean {
  return prefix.length <= ids.length && prefix.every((id, i) => ids[i] === id);
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
