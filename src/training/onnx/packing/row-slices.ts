// Slices of rows. Rows go through the stages of a layer in slices that are large enough for fast products and small
// enough for the processor's cache. Slices also limit the memory that a stage needs while it runs.

import type { Tensor } from "onnxruntime-node";
import { joinRows } from "../../../graph/join-rows.ts";
import { floats } from "../../../graph/session.ts";
import { SLICE_ROWS } from "./pack-plan.ts";

export interface Rows {
  row: number;
  count: number;
}

/** Slices whose sizes differ by at most one row. A row alone would give products with other bits. */
export function sliceRows(count: number): Rows[] {
  const slices = Math.ceil(count / SLICE_ROWS);
  const start = (i: number) => Math.floor((i * count) / slices);
  return Array.from({ length: slices }, (_, i) => ({ row: start(i), count: start(i + 1) - start(i) }));
}

/** A view of some rows of a matrix [n, width]. */
export function rowsOf(data: Float32Array, { row, count }: Rows, width: number): Tensor {
  return floats(data.subarray(row * width, (row + count) * width), [count, width]);
}

/** Joins slices into one matrix. */
export function joinSlices(parts: readonly Tensor[]): Float32Array {
  return joinRows(parts.map(({ data }) => data as Float32Array));
}

/** target[at ..] += values[from .. from + count - 1] */
export function addInto(target: Float32Array, at: number, values: Float32Array, from: number, count: number): void {
  const shift = at - from;
  for (let i = from; i < from + count; i++) target[i + shift]! += values[i]!;
}
