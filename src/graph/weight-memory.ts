// Memory that returns to the operating system once it is collected. Weights pass through it on their way into the
// runtime, which makes its own copy. The C library of most Linux systems keeps freed pieces of up to 32 MiB, so a
// server would stay at twice the size of its model. It returns larger pieces.

const PIECE_BYTES = 64 * 2 ** 20;
/** An alignment in bytes that suits every type. */
const ALIGNMENT = 8;

interface ArrayType<T> {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBuffer, byteOffset: number, length: number): T;
}

/** Arrays that live and die together, side by side in large pieces. */
export class WeightMemory {
  #piece = new ArrayBuffer(0);
  #used = 0;

  /** An array of zeros. */
  take<T>(type: ArrayType<T>, length: number): T {
    const bytes = length * type.BYTES_PER_ELEMENT;
    if (this.#used + bytes > this.#piece.byteLength) {
      this.#piece = new ArrayBuffer(Math.max(PIECE_BYTES, bytes));
      this.#used = 0;
    }
    const array = new type(this.#piece, this.#used, length);
    this.#used = Math.ceil((this.#used + bytes) / ALIGNMENT) * ALIGNMENT;
    return array;
  }
}
