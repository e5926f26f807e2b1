// Builds token sequences with a mask, turn by turn. A turn whose prompt begins with the whole sequence so far continues
// it; any other prompt starts a new sequence. So a token is only trained after the prefix that it was sampled after.

/** ids[i] is trained where mask[i] is 1; position i - 1 predicts it. */
export interface TokenSequence {
  ids: number[];
  mask: (0 | 1)[];
  /** NaN where unknown or not trained. */
  oldLogprobs: number[];
}

export class SequenceBuilder {
  readonly #sequences: TokenSequence[] = [];
  readonly #tooLong = new Set<TokenSequence>();

  /** Adds a prompt and its reply. `logprobs` null = unknown. */
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
   * Adds a turn whose prompt begins with these tokens and is too long to train. What follows them does not matter. Nor
   * does it matter whether the prompt continues the turns before exactly, if those are too long already.
   */
  tooLong(beginning: readonly number[]): void {
    const last = this.#sequences.at(-1);
    const continues = last && (startsWith(beginning, last.ids) || startsWith(last.ids, beginning));
    const current = continues ? last : this.#begin();
    append(current, beginning.slice(current.ids.length), 0, null);
    this.#tooLong.add(current);
  }

  /** The sequences that have something to train or are too long. */
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

// How long a sequence may be to be trained, and what a report says about longer ones.

export interface LengthLimits {
  /** Longest sequence that the model accepts, in tokens. */
  maxSequenceLength: number;
  /** Longest sequence whose activations fit the memory for training, as the trainer says. */
  maxTrainedLength: number;
}

export interface LengthLimit {
  tokens: number;
  /** For example "longer than 512 tokens", which follows "the sequence is". */
  exceeded: string;
}

/** `allowed`: the longest sequence that the model and the job allow. `named`: what sets it, if it is not the model. */
export function lengthLimit(allowed: number, { maxTrainedLength }: LengthLimits, named?: string): LengthLimit {
  const tokens = Math.min(allowed, maxTrainedLength);
  const why = tokens < allowed ? "the most that fits the memory for training" : named;
  return { tokens, exceeded: `longer than ${tokens} tokens${why === undefined ? "" : `, ${why}`}` };
}

/** The report's reason when only some sequences fit. */
export function partlyTooLong(all: number, fitting: number, { exceeded }: LengthLimit): string {
  return `${all - fitting} of its ${all} sequences are ${exceeded}`;
}
