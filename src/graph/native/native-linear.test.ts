// Int8Linear and Int4Linear, operations of the native module, in graphs.

import { expect, it } from "vitest";
import { asNumbers, graphOf, noise, sessionOf } from "../../../test/native/graphs.ts";
import { need, needing } from "../../../test/support/needs.ts";
import { matrixOf } from "../../model/linear/matrix-rows.ts";
import { quantizeInt4, widenInt4 } from "../../model/linear/quantize.ts";
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

needing(need("the native module", nativeModule !== null)).describe("Int8Linear", () => {
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
    nativeModule!.releaseWeights(weights);
    expect(() => nativeModule!.releaseWeights(weights)).toThrow("no weights");
    expect(() => nativeModule!.packInt8(values, scales, bias, inputs, outputs + 1)).toThrow("length");
    expect(() => nativeModule!.packInt8(values, scales, bias, 0, 0)).toThrow("out of range");
  });

  it("keeps weights while a session uses them", async () => {
    const weights = nativeModule!.packInt8(values, scales, null, inputs, outputs);
    const session = await sessionOf((g) => ({ y: linear(g, g.input("x", ["n", inputs]), weights) }));
    nativeModule!.releaseWeights(weights);
    const { y } = await session.run({ x: floats(noise(inputs), [1, inputs]) }, { y: null });
    expect(asNumbers(y).some((value) => value !== 0)).toBe(true);
    await session.release();
  });
});

needing(need("the native module", nativeModule !== null)).describe("Int4Linear", () => {
  const [inputs, outputs] = [96, 40];
  const { values, scales } = quantizeInt4(matrixOf(noise(inputs * outputs), outputs, inputs));
  const bias = noise(outputs, 4);

  it("multiplies with the weights that training passes gradients through, with any number of threads", async () => {
    const exact = widenInt4({ values, scales });
    const x = noise(20 * inputs, 5);
    const found: number[][] = [];
    for (const threads of [1, 2, 3]) {
      const weights = nativeModule!.packInt4(values, scales, bias, inputs, outputs);
      const model = emitOnnx(
        graphOf((g) => {
          const from = [g.input("x", ["n", inputs])];
          return { y: g.add("Int4Linear", from, [{ shape: ["n", outputs] }], { weights }, FLYWHEEL)[0]! };
        }),
      );
      const session = await NativeSession.create(model, { threads, packed: [weights] });
      const { y } = await session.run({ x: floats(x, [20, inputs]) }, { y: null });
      found.push(asNumbers(y));
      await session.release();
    }
    for (const y of found) {
      expect(y).toEqual(found[0]);
      for (const [at, value] of y.entries()) {
        const [row, column] = [Math.floor(at / outputs), at % outputs];
        let [sum, bound] = [bias[column]!, 1e-5];
        for (let i = 0; i < inputs; i++) {
          const weight = exact[column * inputs + i]!;
          sum += x[row * inputs + i]! * weight;
          // Half a unit of the activations, the largest of which is 1.
          bound += Math.abs(weight) / 254;
        }
        expect(Math.abs(value - sum)).toBeLessThan(bound);
      }
    }
  });

  it("refuses weights that do not fit their sizes", () => {
    const pack = nativeModule!.packInt4;
    expect(() => pack(values, scales, null, inputs - 1, outputs)).toThrow("multiple of 32");
    expect(() => pack(values, scales, null, inputs, outputs + 1)).toThrow("length");
    expect(() => pack(values, scales.subarray(1), null, inputs, outputs)).toThrow("length");
    expect(() => pack(values, scales, bias.subarray(1), inputs, outputs)).toThrow("length");
    expect(() => pack(values, scales, bias, 0, 0)).toThrow("out of range");
  });
});
