// Finds how large a digit of an activation may be for this machine's byte products to be exact. x64 processors without
// VNNI add pairs of products in 16 bits. Those hold two products of 7 by 8 bits, but not of 8 by 8. The probe runs
// products instead of naming processors.

import { Graph, MICROSOFT } from "../../graph/graph.ts";
import { scalar } from "../../graph/ops.ts";
import { bytes, GraphSession } from "../../graph/session.ts";

/** A digit of an activation is an integer from -DigitSteps to DigitSteps. Weights go up to 127 on every machine. */
export type DigitSteps = 127 | 63;

/** "native": the native module rounds activations and multiplies in one operation, with digits of its own. */
export type Digits = DigitSteps | "native";

const INPUTS = 64;
const OUTPUTS = 32;

export async function probeDigitSteps(): Promise<DigitSteps> {
  return (await exactFor(255)) ? 127 : 63;
}

/** Whether products of the largest weights with this byte as activation are exact for any number of rows. */
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
