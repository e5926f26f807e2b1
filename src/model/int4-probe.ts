// Whether the machine's int4 product gives a row that is computed alone the bits it has beside others. The runtime's kernel for
// x64 processors without AVX-512 does not: one row takes another way through it than two do. Found by trying, not by
// naming processors.

import { Graph } from "../graph/graph.ts";
import { floats, GraphSession } from "../graph/session.ts";
import { linear } from "./linear.ts";
import { matrixOf } from "./matrix-rows.ts";

/** The runtime divides the rows of an int4 product by this among its threads, so the last may be alone in a longer batch too. */
export const INT4_ROWS = 128;

const INPUTS = 256;
const OUTPUTS = 64;

export async function int4RowsDifferAlone(): Promise<boolean> {
  const g = new Graph();
  const map = { name: "w", weight: matrixOf(waves(OUTPUTS * INPUTS, 7), OUTPUTS, INPUTS), bias: null };
  g.output("y", linear(g, g.input("x", ["n", INPUTS]), { ...map, digitSteps: 63 }, "int4"));
  const session = await GraphSession.create(g, { threads: 1 });
  const x = waves(2 * INPUTS, 3);
  const product = async (rows: number) => {
    const { y } = await session.run({ x: floats(x.subarray(0, rows * INPUTS), [rows, INPUTS]) });
    return y!.data as Float32Array;
  };
  try {
    const [alone, together] = [await product(1), await product(2)];
    return alone.some((value, i) => value !== together[i]);
  } finally {
    await session.close();
  }
}

/** Numbers between -1 and 1 without a pattern that rounding would keep. */
function waves(count: number, frequency: number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => Math.sin(frequency * i * i));
}
