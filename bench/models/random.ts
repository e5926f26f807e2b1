// Seeded random numbers for weights and prompts, the same on every machine. Not for sampling.

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = (Math.imul(seed, 0x9e3779b1) ^ 0x85ebca6b) | 0 || 1;
  }

  /** In (0, 1). */
  uniform(): number {
    // xorshift32
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x;
    return ((x >>> 0) + 0.5) / 2 ** 32;
  }

  /** In 0 .. bound - 1. */
  below(bound: number): number {
    return Math.floor(this.uniform() * bound);
  }

  normal(): number {
    return Math.sqrt(-2 * Math.log(this.uniform())) * Math.cos(2 * Math.PI * this.uniform());
  }

  tokens(count: number, vocab: number): number[] {
    return Array.from({ length: count }, () => this.below(vocab));
  }
}
