// Rows go through the stages of a layer in slices: enough of them for the products to be fast, few enough for what a slice
// makes on its way to stay in the processor's cache. It also bounds what the stages need while they run.

import type { Tensor } from "onnxruntime-node";
import { floats } from "../../graph/session.ts";

export interface Rows {
  row: number;
  count: number;
}

/** The most rows that a stage gets at a time. */
export const SLICE_ROWS = 256;

/** `count` rows in slices of nearly equal size. */
export function sliceRows(count: number): Rows[] {
  const slices = Math.ceil(count / SLICE_ROWS);
  const size = Math.ceil(count / slices);
  return Array.from({ length: slices }, (_, i) => ({ row: i * size, count: Math.min(size, count - i * size) }));
}

/** Some rows of a matrix [n, width], read in place. */
export function rowsOf(data: Float32Array, { row, count }: Rows, width: number): Tensor {
  return floats(data.subarray(row * width, (row + count) * width), [count, width]);
}

/** Matrices of equal width, one below the other. */
export function joinRows(parts: readonly Tensor[]): Float32Array {
  if (parts.length === 1) return parts[0]!.data as Float32Array;
  const joined = new Float32Array(parts.reduce((sum, { size }) => sum + size, 0));
  let at = 0;
  for (const { data, size } of parts) {
    joined.set(data as Float32Array, at);
    at += size;
  }
  return joined;
}

/** target[at ..] += values[from .. from + count - 1] */
export function addInto(target: Float32Array, at: number, values: Float32Array, from: number, count: number): void {
  const shift = at - from;
  for (let i = from; i < from + count; i++) target[i + shift]! += values[i]!;
}
