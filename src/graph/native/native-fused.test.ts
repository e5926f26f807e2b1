// RmsNorm, Gated, and what Int8Linear takes in of them: operations of the native module, in graphs.

import { expect, it } from "vitest";
import { asNumbers, noise, sessionOf } from "../../../test/native/graphs.ts";
import { need, needing } from "../../../test/support/needs.ts";
import { type Attribute, FLYWHEEL, type Graph, type Value } from "../graph.ts";
import * as ops from "../ops.ts";
import { type Feeds, floats } from "../session.ts";
import { nativeModule } from "./native-module.ts";

const epsilon = { float: 1e-5 };

function own(
  g: Graph,
  op: string,
  inputs: (Value | null)[],
  shape: Value["shape"],
  attributes: Record<string, Attribute>,
) {
  return g.add(op, inputs, [{ shape }], attributes, FLYWHEEL)[0]!;
}

async function evaluate(build: (g: Graph) => Value, feeds: Feeds, threads = 1): Promise<number[]> {
  const session = await sessionOf((g) => ({ result: build(g) }), threads);
  try {
    return asNumbers((await session.run(feeds, { result: null })).result);
  } finally {
    await session.release();
  }
}

function expectClose(found: number[], expected: number[]) {
  expect(found.length).toBe(expected.length);
  for (const [i, value] of found.entries()) {
    expect(Math.abs(value - expected[i]!)).toBeLessThan(1e-6 * (1 + Math.abs(expected[i]!)));
  }
}

needing(need("the native module", nativeModule !== null)).describe("RmsNorm and Gated", () => {
  it("normalize rows", async () => {
    const [rows, n] = [301, 37];
    const [x, weight] = [noise(rows * n), noise(n, 2)];
    const expected = Array.from(x, (value, at) => {
      const row = x.subarray(at - (at % n), at - (at % n) + n);
      const mean = row.reduce((sum, y) => sum + y * y, 0) / n;
      return (value / Math.sqrt(mean + 1e-5)) * weight[at % n]!;
    });
    const build = (g: Graph) => {
      const values = g.input("x", ["n", n]);
      return own(g, "RmsNorm", [values, g.initializer("weight", [n], weight)], values.shape, { epsilon });
    };
    for (const threads of [1, 3]) expectClose(await evaluate(build, { x: floats(x, [rows, n]) }, threads), expected);
    expect(await evaluate(build, { x: floats(noise(0), [0, n]) })).toEqual([]);
    await expect(evaluate(build, { x: floats(noise(n + 1), [1, n + 1]) })).rejects.toThrow();
  });

  it("activate", async () => {
    const [gate, up] = [noise(3 * 50, 7).map((x) => 9 * x), noise(3 * 50, 2)];
    const activations = [
      (x: number) => x / (1 + Math.exp(-x)),
      (x: number) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
    ];
    const run = (activation: number, upDims: number[]) =>
      evaluate(
        (g) => {
          const inputs = [g.input("gate", ["n", 50]), g.input("up", ["m", "k"])];
          return own(g, "Gated", inputs, ["n", 50], { activation });
        },
        { gate: floats(gate, [3, 50]), up: floats(up, upDims) },
      );
    for (const [i, activation] of activations.entries()) {
      expectClose(
        await run(i, [3, 50]),
        Array.from(gate, (x, at) => activation(x) * up[at]!),
      );
    }
    await expect(run(0, [2, 75])).rejects.toThrow("other sizes");
    await expect(run(2, [3, 50])).rejects.toThrow("unknown activation");
  });
});

needing(need("the native module", nativeModule !== null)).describe("Int8Linear", () => {
  const [inputs, outputs, rows] = [70, 40, 9];
  const values = Int8Array.from(noise(inputs * outputs), (x) => Math.round(127 * x));
  const scales = noise(outputs, 3).map((x) => 0.01 + Math.abs(x) / 100);
  const norm = noise(inputs, 4);
  const x = noise(rows * inputs, 5);
  const residual = noise(rows * outputs, 6);

  function pack() {
    return nativeModule!.packInt8(values, scales, noise(outputs, 8), inputs, outputs);
  }

  const shape = ["n", outputs];
  const of = { x: floats(x, [rows, inputs]) };
  const added = { residual: floats(residual, [rows, outputs]) };
  const gateUp = { gate_up: floats(noise(2 * rows * inputs, 9), [rows, 2 * inputs]) };

  /** Both graphs give the same bits, with any number of threads. */
  async function expectSame(feeds: Feeds, fused: (g: Graph) => Value, parts: (g: Graph) => Value) {
    for (const threads of [1, 2]) expect(await evaluate(fused, feeds, threads)).toEqual(await evaluate(parts, feeds));
  }

  it("gives the bits of its parts", async () => {
    const weights = pack();
    const linear = (g: Graph, from: (Value | null)[], input: number) =>
      own(g, "Int8Linear", from, shape, { weights, input, epsilon });
    const values = (g: Graph) => g.input("x", ["n", inputs]);
    const weight = (g: Graph) => g.initializer("weight", [inputs], norm);
    await expectSame(
      { ...of, ...added },
      (g) => linear(g, [values(g), weight(g), g.input("residual", shape)], 1),
      (g) => {
        const normed = own(g, "RmsNorm", [values(g), weight(g)], ["n", inputs], { epsilon });
        return ops.add(g, linear(g, [normed], 0), g.input("residual", shape));
      },
    );
    await expectSame(
      { ...of, ...added },
      (g) => linear(g, [values(g), null, g.input("residual", shape)], 0),
      (g) => ops.add(g, linear(g, [values(g)], 0), g.input("residual", shape)),
    );
    for (const activation of [0, 1]) {
      await expectSame(
        gateUp,
        (g) => linear(g, [g.input("gate_up", ["n", 2 * inputs])], 2 + activation),
        (g) => {
          const [gate, up] = ops.split(g, g.input("gate_up", ["n", 2 * inputs]), 1, [inputs, inputs]);
          return linear(g, [own(g, "Gated", [gate!, up!], ["n", inputs], { activation })], 0);
        },
      );
    }
    nativeModule!.releaseWeights(weights);
  });

  it("gives the rows that it multiplied", async () => {
    const weights = pack();
    const attributes = { weights, input: 1, epsilon };
    const kept = (g: Graph) => {
      const from = [g.input("x", ["n", inputs]), g.initializer("weight", [inputs], norm)];
      return g.add("Int8Linear", from, [{ shape }, { shape: ["n", inputs] }], attributes, FLYWHEEL)[1]!;
    };
    const normed = (g: Graph) => {
      const from = [g.input("x", ["n", inputs]), g.initializer("weight", [inputs], norm)];
      return own(g, "RmsNorm", from, ["n", inputs], { epsilon });
    };
    await expectSame(of, kept, normed);
    await expect(
      evaluate((g) => {
        const from = [g.input("x", ["n", inputs])];
        return g.add("Int8Linear", from, [{ shape }, { shape: ["n", inputs] }], { weights }, FLYWHEEL)[1]!;
      }, of),
    ).rejects.toThrow("plain rows");
    nativeModule!.releaseWeights(weights);
  });

  it("refuses inputs of other sizes", async () => {
    const weights = pack();
    const run = (input: number, more: (g: Graph) => (Value | null)[], feeds: Feeds = of) =>
      evaluate(
        (g) => own(g, "Int8Linear", [g.input("x", ["n", "k"]), ...more(g)], shape, { weights, input, epsilon }),
        feeds,
      );
    await expect(run(4, () => [])).rejects.toThrow("unknown kind");
    await expect(run(1, () => [])).rejects.toThrow("needs its weight");
    await expect(run(0, (g) => [g.initializer("weight", [inputs], norm)])).rejects.toThrow("nothing else does");
    await expect(run(1, (g) => [g.initializer("weight", [3], noise(3))])).rejects.toThrow("another length");
    await expect(run(2, () => [])).rejects.toThrow("last dimension");
    await expect(run(0, (g) => [null, g.initializer("added", [outputs], noise(outputs))])).rejects.toThrow("residual");
    nativeModule!.releaseWeights(weights);
  });
});
