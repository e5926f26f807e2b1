// The measured part of decoding a batch. The clock starts when every sequence has made its first tokens and stops when each
// has made `steps` more.

import { type Lap, startLap } from "../process/stopwatch.ts";

export class DecodeLap {
  readonly #from: number;
  readonly #to: number;
  #counted = 0;
  #finish: ((tokens: number) => Lap) | null = null;
  #lap: Lap | null = null;

  /** `skipped` is the number of tokens per sequence before the clock starts. */
  constructor(batch: number, skipped: number, steps: number) {
    this.#from = batch * skipped;
    this.#to = batch * (skipped + steps);
  }

  add(tokens: number): void {
    this.#counted += tokens;
    if (this.#counted >= this.#from) this.#finish ??= startLap();
    if (this.#counted >= this.#to) this.#lap ??= this.#finish!(this.#to - this.#from);
  }

  get result(): Lap {
    if (this.#lap === null) throw new Error(`decoding ended after ${this.#counted} of ${this.#to} tokens`);
    return this.#lap;
  }
}
