// A growing list of 32-bit integers for token histories and block tables. It returns views instead of copies. The
// initial array is shared with the caller and copied on the first push, so a thousand choices of one request share one
// prompt. A list never shrinks; `clear` is only for lists that started empty.

const EMPTY = new Int32Array(0);

export class IntList {
  #buffer: Int32Array;
  length: number;

  constructor(initial: Int32Array = EMPTY) {
    this.#buffer = initial;
    this.length = initial.length;
  }

  push(value: number): void {
    if (this.length === this.#buffer.length) {
      const grown = new Int32Array(Math.max(16, this.length + (this.length >> 1)));
      grown.set(this.#buffer);
      this.#buffer = grown;
    }
    this.#buffer[this.length++] = value;
  }

  at(index: number): number {
    if (index < 0 || index >= this.length) throw new RangeError(`index ${index} outside a list of ${this.length}`);
    return this.#buffer[index]!;
  }

  /** Elements from .. to - 1, valid until the next push. */
  view(from: number, to: number): Int32Array {
    return this.#buffer.subarray(from, Math.min(to, this.length));
  }

  clear(): void {
    this.length = 0;
  }
}
