// What the machine's int4 product keeps of the rule that a row's bits depend on nothing else. The runtime's kernels for x64
// without AVX-512 and for arm64 without dot products compute a lone row another way than two. For x64 without AVX2 it has
// none: it widens all weights for every product and multiplies as float32, with sums divided by how many threads there
// are. Found by trying, not by naming processors.

import { Graph } from "../../graph/graph.ts";
import { floats, GraphSession } from "../../graph/session.ts";
import { linear, type WeightType } from "./linear.ts";
import { matrixOf } from "./matrix-rows.ts";

/** The runtime divides the rows of an int4 product by this among its threads, so the last may be alone in a longer batch too. */
export const INT4_ROWS = 128;

// Without a kernel, one thread divides sums of this many for this many outputs, and two do not.
const INPUTS = 512;
const OUTPUTS = 64;
const MOST_ROWS = 8;

export async function int4RowsDifferAlone(): Promise<boolean> {
  const [alone, together] = await products(1, [1, 2]);
  return differs(alone!, together!);
}

/** int8 for int4 on a machine without a kernel, where it is faster too and gives the same bits with any number of threads. */
export async function usableWeights(type: WeightType): Promise<WeightType> {
  if (type !== "int4") return type;
  const [[one], [two]] = await Promise.all([products(1, [MOST_ROWS]), products(2, [MOST_ROWS])]);
  return differs(one!, two!) ? "int8" : "int4";
}

/** The first rows of the same matrix, as many as each of `rows` says, times the same weights. */
async function products(threads: number, rows: readonly number[]): Promise<Float32Array[]> {
  const g = new Graph();
  const map = { name: "w", weight: matrixOf(waves(OUTPUTS * INPUTS, 7), OUTPUTS, INPUTS), bias: null };
  g.output("y", linear(g, g.input("x", ["n", INPUTS]), { ...map, digitSteps: 63 }, "int4"));
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

/** Numbers between -1 and 1 without a pattern that rounding would keep. */
function waves(count: number, frequency: number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => Math.sin(frequency * i * i));
}
