// How large a digit of an activation may be so that the machine's byte products are exact. x64 processors without VNNI add
// pairs of products in 16 bits, which holds two products of 7 bits with 8 but not of 8 with 8. Found by trying, not by
// naming processors.

import { Graph, MICROSOFT } from "../../graph/graph.ts";
import { scalar } from "../../graph/ops.ts";
import { bytes, GraphSession } from "../../graph/session.ts";

/** A digit of an activation is a whole number from -DigitSteps to DigitSteps; a weight goes to 127 on any machine. */
export type DigitSteps = 127 | 63;

const INPUTS = 64;
const OUTPUTS = 32;

export async function probeDigitSteps(): Promise<DigitSteps> {
  return (await exactFor(255)) ? 127 : 63;
}

/** Whether products of the largest weights with activations of this byte are exact, however many rows there are. */
export async function exactFor(activation: number): Promise<boolean> {
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
      const { y } = await session.run({ x: bytes(new Uint8Array(rows * INPUTS).fill(activation), [rows, INPUTS]) });
      if ((y!.data as Float32Array).some((value) => value !== activation * 127 * INPUTS)) return false;
    }
    return true;
  } finally {
    await session.close();
  }
}
