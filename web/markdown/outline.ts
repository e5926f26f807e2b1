// Levels of headings. An answer may begin with "###" and skip levels; on the page they follow one another, below the page's own h1.

const HIGHEST = 2;
const LOWEST = 6;

export class Outline {
  readonly #depths: number[];

  constructor(depths: readonly number[] = []) {
    this.#depths = [...depths];
  }

  copy(): Outline {
    return new Outline(this.#depths);
  }

  /** The level of the next heading. `depth`: its number of hashes. */
  level(depth: number): number {
    while (this.#depths.length > 0 && this.#depths.at(-1)! >= depth) this.#depths.pop();
    this.#depths.push(depth);
    return Math.min(LOWEST, HIGHEST - 1 + this.#depths.length);
  }
}
