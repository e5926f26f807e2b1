// Which range of weights the machine's byte products are exact for. x64 processors without VNNI add pairs of products in
// 16 bits and saturate with full-range weights; half the range is exact everywhere. Found by trying, not by naming
// processors.

import { Graph, MICROSOFT } from "../graph/graph.ts";
import { scalar } from "../graph/ops.ts";
import { bytes, GraphSession } from "../graph/session.ts";

/** Largest magnitude of an int8 weight. */
export type Int8Range = 127 | 63;

const INPUTS = 64;
const OUTPUTS = 32;

export async function probeInt8Range(): Promise<Int8Range> {
  const g = new Graph();
  const inputs = [
    g.input("x", ["n", INPUTS], "uint8"),
    g.initializer("w", [INPUTS, OUTPUTS], new Int8Array(INPUTS * OUTPUTS).fill(127)),
    scalar(g, 1),
    g.initializer("scale", [OUTPUTS], new Float32Array(OUTPUTS).fill(1)),
    g.constant(new Uint8Array([0]), []),
  ];
  g.output("y", g.add("MatMulIntegerToFloat", inputs, [{ shape: ["n", OUTPUTS] }], {}, MICROSOFT)[0]!);
  const session = await GraphSession.create(g, { threads: 1 });
  try {
    for (const rows of [1, 2, 5, 16, 40]) {
      const { y } = await session.run({ x: bytes(new Uint8Array(rows * INPUTS).fill(255), [rows, INPUTS]) });
      if ((y!.data as Float32Array).some((value) => value !== 255 * 127 * INPUTS)) return 63;
    }
    return 127;
  } finally {
    await session.close();
  }
}
