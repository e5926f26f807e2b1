// Tests how far this machine's int4 product keeps a row's bits independent of everything else. The runtime's kernels
// for x64 without AVX-512 and for arm64 without dot products compute a lone row differently from two. For x64 without
// AVX2 there is no kernel: the runtime widens all weights for every product and multiplies as float32, with sums split
// by the number of threads. The probe runs products instead of naming processors.

import { Graph } from "../../graph/graph.ts";
import { floats, GraphSession } from "../../graph/session.ts";
import { linear, type WeightType } from "./linear.ts";
import { matrixOf } from "./matrix-rows.ts";

/** Threads get rows of an int4 product in groups of this size, so the last row of a longer batch may be alone too. */
export const INT4_ROWS = 128;

// Without a kernel, one thread splits sums of this many terms for this many outputs, and two threads do not.
const INPUTS = 512;
const OUTPUTS = 64;
const MOST_ROWS = 8;

export async function int4RowsDifferAlone(): Promise<boolean> {
  const [alone, together] = await products(1, [1, 2]);
  return differs(alone!, together!);
}

/** int8 instead of int4 on a machine without a kernel: it is faster and gives the same bits with any number of threads. */
export async function usableWeights(type: WeightType): Promise<WeightType> {
  if (type !== "int4") return type;
  const [[one], [two]] = await Promise.all([products(1, [MOST_ROWS]), products(2, [MOST_ROWS])]);
  return differs(one!, two!) ? "int8" : "int4";
}

/** For each of `rows`: that many first rows of one matrix, times the same weights. */
async function products(threads: number, rows: readonly number[]): Promise<Float32Array[]> {
  const g = new Graph();
  const map = { name: "w", weight: matrixOf(waves(OUTPUTS * INPUTS, 7), OUTPUTS, INPUTS), bias: null };
  g.output("y", linear(g, g.input("x", ["n", INPUTS]), { ...map, digits: 63 }, "int4"));
  const session = await GraphSession.create(g, { threads });
  const x = waves(MOST_ROWS * INPUTS, 3);
  try {
    const results: Float32Array[] = [];
    for (const n of rows) {
      const { y } = await session.run({ x: floats(x.subarray(0, n * INPUTS), [n, INPUTS]) });
      results.push(y!.data as Float32Array);
    }
    return results;
  } finally {
    await session.close();
  }
}

function differs(few: Float32Array, many: Float32Array): boolean {
  return few.some((value, i) => value !== many[i]);
}

/** Numbers between -1 and 1 without a pattern that survives rounding. */
function waves(count: number, frequency: number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => Math.sin(frequency * i * i));
}
