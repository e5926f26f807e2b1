// Int8Linear, an operation of the native module, in graphs.

import { describe, expect, it } from "vitest";
import { asNumbers, graphOf, noise, sessionOf } from "../../../test/native/graphs.ts";
import { FLYWHEEL, type Graph, type Value } from "../graph.ts";
import { emitOnnx } from "../onnx.ts";
import type { Tensor } from "../onnx-runtime.ts";
import * as ops from "../ops.ts";
import { bools, type Feeds, floats } from "../session.ts";
import { nativeModule } from "./native-module.ts";
import { NativeSession } from "./native-session.ts";

async function evaluate(build: (g: Graph) => Value, feeds: Feeds): Promise<Tensor> {
  const session = await sessionOf((g) => ({ result: build(g) }));
  try {
    return (await session.run(feeds, { result: null })).result!;
  } finally {
    await session.release();
  }
}

describe.skipIf(nativeModule === null)("Int8Linear", () => {
  const inputs = 48;
  const outputs = 32;
  const values = Int8Array.from(noise(inputs * outputs), (x) => Math.round(127 * x));
  const scales = noise(outputs, 3).map((x) => 0.01 + Math.abs(x) / 100);
  const bias = noise(outputs, 4);
  const linear = (g: Graph, x: Value, weights: number) =>
    g.add("Int8Linear", [x], [{ shape: [...x.shape.slice(0, -1), outputs] }], { weights }, FLYWHEEL)[0]!;

  it("multiplies with packed weights, in branches too, with any number of threads", async () => {
    const x = noise(7 * inputs, 5);
    const expected = Array.from({ length: 7 * outputs }, (_, at) => {
      const [row, column] = [Math.floor(at / outputs), at % outputs];
      let sum = 0;
      for (let i = 0; i < inputs; i++) sum += x[row * inputs + i]! * values[i * outputs + column]!;
      return sum * scales[column]! + bias[column]!;
    });
    const found: number[][] = [];
    for (const threads of [1, 2, 3]) {
      const weights = nativeModule!.packInt8(values, scales, bias, inputs, outputs);
      const model = emitOnnx(
        graphOf((g) => {
          const rows = g.input("x", ["n", inputs]);
          const [chosen] = ops.choose(g, g.input("which", [], "bool"), [["n", outputs]], {
            yes: (sub) => [linear(sub, rows, weights)],
            no: (sub) => [ops.add(sub, linear(sub, rows, weights), linear(sub, rows, weights))],
          });
          return { y: linear(g, rows, weights), chosen: ops.exp(g, chosen!) };
        }),
      );
      const session = await NativeSession.create(model, { threads, packed: [weights] });
      for (const which of [0, 1]) {
        const feeds = { x: floats(x, [7, inputs]), which: bools(Uint8Array.of(which), []) };
        const { y, chosen } = await session.run(feeds, { y: null, chosen: null });
        expect(y!.dims).toEqual([7, outputs]);
        found.push(asNumbers(y));
        for (const [i, value] of asNumbers(chosen).entries()) {
          expect(Math.log(value)).toBeCloseTo(expected[i]! * (which ? 1 : 2), 1);
        }
      }
      await session.release();
    }
    for (const y of found) {
      expect(y).toEqual(found[0]);
      for (const [i, value] of y.entries()) expect(Math.abs(value - expected[i]!)).toBeLessThan(2e-3);
    }
  });

  it("refuses unknown weights and rows of another length", async () => {
    await expect(evaluate((g) => linear(g, g.input("x", ["n", inputs]), 12345), {})).rejects.toThrow("no weights");
    const weights = nativeModule!.packInt8(values, scales, null, inputs, outputs);
    const run = (columns: number, rows: number) =>
      evaluate((g) => linear(g, g.input("x", ["n", columns]), weights), {
        x: floats(noise(rows * columns), [rows, columns]),
      });
    await expect(run(inputs - 1, 2)).rejects.toThrow("last dimension");
    expect((await run(inputs, 0)).dims).toEqual([0, outputs]);
    nativeModule!.releaseInt8(weights);
    expect(() => nativeModule!.releaseInt8(weights)).toThrow("no weights");
    expect(() => nativeModule!.packInt8(values, scales, bias, inputs, outputs + 1)).toThrow("length");
    expect(() => nativeModule!.packInt8(values, scales, bias, 0, 0)).toThrow("out of range");
  });

  it("keeps weights while a session uses them", async () => {
    const weights = nativeModule!.packInt8(values, scales, null, inputs, outputs);
    const session = await sessionOf((g) => ({ y: linear(g, g.input("x", ["n", inputs]), weights) }));
    nativeModule!.releaseInt8(weights);
    const { y } = await session.run({ x: floats(noise(inputs), [1, inputs]) }, { y: null });
    expect(asNumbers(y).some((value) => value !== 0)).toBe(true);
    await session.release();
  });
});
