// Repetition, frequency and presence penalties, in this order. Repetition looks at prompt and output, once per id. The
// other two look at the output only, frequency by count. Results stay finite whatever the penalty; only masks forbid.

import type { SamplingParams } from "./sampling-params.ts";

const MAX_FLOAT = 3.4028234663852886e38;

export class Penalties {
  readonly #repetition: number;
  readonly #frequency: number;
  readonly #presence: number;
  /** Ids of prompt and output; filled only if the repetition penalty is on. */
  readonly #seen = new Set<number>();
  /** How often each id occurs in the output; filled only if one of the other two is on. */
  readonly #outputCounts = new Map<number, number>();

  constructor(params: SamplingParams, promptTokenIds: readonly number[]) {
    this.#repetition = params.repetitionPenalty;
    this.#frequency = params.frequencyPenalty;
    this.#presence = params.presencePenalty;
    if (this.#repetition !== 1) for (const id of promptTokenIds) this.#seen.add(id);
  }

  /** A token was appended to the output. */
  note(id: number): void {
    if (this.#repetition !== 1) this.#seen.add(id);
    if (this.#frequency !== 0 || this.#presence !== 0) {
      this.#outputCounts.set(id, (this.#outputCounts.get(id) ?? 0) + 1);
    }
  }

  /** Returns whether it changed anything. */
  apply(values: Float32Array): boolean {
    for (const id of this.#seen) {
      const value = values[id]!;
      if (value > 0) values[id] = Math.min(MAX_FLOAT, value / this.#repetition);
      else if (value !== Number.NEGATIVE_INFINITY) values[id] = Math.max(-MAX_FLOAT, value * this.#repetition);
    }
    for (const [id, count] of this.#outputCounts) {
      values[id]! -= this.#frequency * count;
      values[id]! -= this.#presence;
    }
    return this.#seen.size > 0 || this.#outputCounts.size > 0;
  }
}
