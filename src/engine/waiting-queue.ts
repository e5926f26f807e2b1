// Sequences that wait to run, best first (see compareSequences). A sorted array with the best at the end: taking is
// O(1), adding and removing O(log n) comparisons plus a memmove, which takes microseconds for thousands of entries.

import { compareSequences, type Sequence } from "./sequence.ts";

export class WaitingQueue {
  /** Worst first. */
  readonly #sorted: Sequence[] = [];

  add(sequence: Sequence): void {
    this.#sorted.splice(this.#position(sequence), 0, sequence);
  }

  best(): Sequence | undefined {
    return this.#sorted.at(-1);
  }

  /** True if it was waiting. */
  remove(sequence: Sequence): boolean {
    const at = this.#position(sequence);
    if (this.#sorted[at] !== sequence) return false;
    this.#sorted.splice(at, 1);
    return true;
  }

  values(): Iterable<Sequence> {
    return this.#sorted;
  }

  /** Index of the first element that does not go after `sequence`. */
  #position(sequence: Sequence): number {
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareSequences(this.#sorted[middle]!, sequence) > 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
