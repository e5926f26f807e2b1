// Measures the floating-point operations per second of one large float32 matrix product with packed weights, in its own
// session. This is the ceiling for the model's linear layers.

import { Graph } from "../../src/graph/graph.ts";
import { matmul } from "../../src/graph/ops.ts";
import { floats, GraphSession } from "../../src/graph/session.ts";
import { type Lap, startLap } from "../process/stopwatch.ts";

export interface GemmProbe {
  /** The lap's tokens are floating-point operations. */
  run(): Promise<Lap>;
}

/** [512, 2048] · [2048, 2048], four times per lap. */
const ROWS = 512;
const SIZE = 2048;
const PRODUCTS = 4;

export async function create({ threads }: { threads: number }): Promise<GemmProbe> {
  const g = new Graph();
  const x = g.input("x", [ROWS, SIZE]);
  const weights = Float32Array.from({ length: SIZE * SIZE }, (_, i) => (i % 17) / 17);
  g.output("y", matmul(g, x, g.initializer("w", [SIZE, SIZE], weights)));
  const session = await GraphSession.create(g, { threads });
  const input = new Float32Array(ROWS * SIZE).fill(0.5);
  return {
    async run() {
      const lap = startLap();
      for (let i = 0; i < PRODUCTS; i++) await session.run({ x: floats(input, [ROWS, SIZE]) });
      return lap(PRODUCTS * 2 * ROWS * SIZE * SIZE);
    },
  };
}
