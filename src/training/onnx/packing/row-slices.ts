// Rows go through the stages of a layer in slices: enough of them for the products to be fast, few enough for what a slice
// makes on its way to stay in the processor's cache. It also bounds what the stages need while they run.

import type { Tensor } from "onnxruntime-node";
import { joinRows } from "../../../graph/join-rows.ts";
import { floats } from "../../../graph/session.ts";
import { SLICE_ROWS } from "./piece-sizes.ts";

export interface Rows {
  row: number;
  count: number;
}

/** `count` rows in slices of equal size, give or take one: the last is never a row alone, whose products have other bits. */
export function sliceRows(count: number): Rows[] {
  const slices = Math.ceil(count / SLICE_ROWS);
  const start = (i: number) => Math.floor((i * count) / slices);
  return Array.from({ length: slices }, (_, i) => ({ row: start(i), count: start(i + 1) - start(i) }));
}

/** Some rows of a matrix [n, width], read in place. */
export function rowsOf(data: Float32Array, { row, count }: Rows, width: number): Tensor {
  return floats(data.subarray(row * width, (row + count) * width), [count, width]);
}

/** Slices put together again. */
export function joinSlices(parts: readonly Tensor[]): Float32Array {
  return joinRows(parts.map(({ data }) => data as Float32Array));
}

/** target[at ..] += values[from .. from + count - 1] */
export function addInto(target: Float32Array, at: number, values: Float32Array, from: number, count: number): void {
  const shift = at - from;
  for (let i = from; i < from + count; i++) target[i + shift]! += values[i]!;
}
