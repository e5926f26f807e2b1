// The weights of a linear layer, read in pieces of some rows, so that a large one is never whole in memory as float32.

import type { TensorReader } from "../checkpoint/checkpoint.ts";

export interface MatrixRows {
  readonly out: number;
  readonly inputs: number;
  /** Rows `first` .. `first + count - 1`: [count, inputs]. Valid until the next call. */
  read(first: number, count: number): Float32Array;
}

/** values: [out, inputs] */
export function matrixOf(values: Float32Array, out: number, inputs: number): MatrixRows {
  return { out, inputs, read: (first, count) => values.subarray(first * inputs, (first + count) * inputs) };
}

/** A tensor stored [inputs, out]. It is read whole, when it is first needed. */
export function rowsOfTransposed(tensor: Pick<TensorReader, "shape" | "read">): MatrixRows {
  const [inputs, out] = tensor.shape as [number, number];
  let columns: Float32Array | null = null;
  const read = (first: number, count: number): Float32Array => {
    columns ??= tensor.read();
    const rows = new Float32Array(count * inputs);
    for (let i = 0; i < inputs; i++) {
      for (let row = 0; row < count; row++) rows[row * inputs + i] = columns[i * out + first + row]!;
    }
    return rows;
  };
  return { out, inputs, read };
}

/** Tensors [.., inputs] as one matrix, their outputs one after the other. Read from the files on demand. */
export function rowsOfTensors(tensors: readonly Pick<TensorReader, "shape" | "readPart">[]): MatrixRows {
  const inputs = tensors[0]!.shape[1]!;
  const out = tensors.reduce((sum, { shape }) => sum + shape[0]!, 0);
  let scratch = new Float32Array(0);
  const read = (first: number, count: number): Float32Array => {
    if (scratch.length < count * inputs) scratch = new Float32Array(count * inputs);
    let start = 0;
    for (const tensor of tensors) {
      const end = start + tensor.shape[0]!;
      const [from, to] = [Math.max(first, start), Math.min(first + count, end)];
      if (from < to) {
        const rows = scratch.subarray((from - first) * inputs, (to - first) * inputs);
        tensor.readPart((from - start) * inputs, rows);
      }
      start = end;
    }
    return scratch.subarray(0, count * inputs);
  };
  return { out, inputs, read };
}

/** Pieces, except the last, are multiples of this many rows. */
export const PIECE_ROWS = 64;
/** A piece has about this many weights at most, so that they stay in the processor's cache. */
const PIECE_WEIGHTS = 2 ** 18;

/** Visits all rows in order. weights: [count, inputs] */
export function eachPiece(
  matrix: MatrixRows,
  visit: (weights: Float32Array, first: number, count: number) => void,
): void {
  const size = PIECE_ROWS * Math.max(1, Math.floor(PIECE_WEIGHTS / PIECE_ROWS / matrix.inputs));
  for (let first = 0; first < matrix.out; first += size) {
    const count = Math.min(size, matrix.out - first);
    visit(matrix.read(first, count), first, count);
  }
}
