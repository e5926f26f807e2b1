// Every rule against central finite differences: the gradient of sum(output * seed) in random points and directions.

import { describe, expect, it } from "vitest";
import { gradients } from "./grad.ts";
import { Graph, type Value } from "./graph.ts";
import * as ops from "./ops.ts";
import { type Feeds, floats, GraphSession, int64s } from "./session.ts";

type Shapes = Readonly<Record<string, readonly number[]>>;

let state = 1;
function random(): number {
  state = (state * 48271) % 0x7fffffff;
  return state / 0x7fffffff;
}
const randomArray = (size: number) => Float32Array.from({ length: size }, () => 2 * random() - 1);
const sizeOf = (shape: readonly number[]) => shape.reduce((product, size) => product * size, 1);
const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);

/**
 * Builds `build` over inputs of these shapes, whose first dimension is named in the graph when `named` says so, and
 * compares the gradient with respect to every input with differences. `fixed` are inputs without a gradient.
 */
async function check(
  shapes: Shapes,
  build: (g: Graph, inputs: Record<string, Value>) => Value | Value[],
  { named = {}, fixed = {} }: { named?: Record<string, string>; fixed?: Feeds } = {},
): Promise<void> {
  const g = new Graph();
  const inputs: Record<string, Value> = {};
  for (const [name, shape] of Object.entries(shapes)) {
    inputs[name] = g.input(name, named[name] === undefined ? shape : [named[name], ...shape.slice(1)]);
  }
  for (const [name, tensor] of Object.entries(fixed)) {
    inputs[name] = g.input(name, tensor.dims, tensor.type as "float32" | "int64");
  }
  const outputs = [build(g, inputs)].flat();
  const seeds = outputs.map((output, i) => g.input(`seed${i}`, output.shape));
  const targets = Object.keys(shapes).map((name) => inputs[name]!);
  const seedOf = new Map(outputs.map((output, i) => [output, seeds[i]!]));
  for (const [i, gradient] of gradients(g, seedOf, targets).entries()) {
    expect(gradient.shape).toEqual(targets[i]!.shape);
    g.output(`d_${targets[i]!.name}`, gradient);
  }
  for (const [i, output] of outputs.entries()) g.output(`y${i}`, output);
  const session = await GraphSession.create(g, { threads: 1 });

  const point = new Map(Object.entries(shapes).map(([name, shape]) => [name, randomArray(sizeOf(shape))]));
  const run = async (at: ReadonlyMap<string, Float32Array>, seedValues: readonly Float32Array[] | null) => {
    const feeds: Feeds = { ...fixed };
    for (const [name, data] of at) feeds[name] = floats(data, shapes[name]!);
    for (const [i, seed] of seeds.entries()) {
      const dims = seed.shape.map((dim) => (typeof dim === "number" ? dim : shapes[firstNamed(named, dim)]![0]!));
      feeds[seed.name] = floats(seedValues?.[i] ?? new Float32Array(sizeOf(dims)), dims);
    }
    return session.run(feeds);
  };
  const plain = await run(point, null);
  const seedValues = outputs.map((_, i) => randomArray(plain[`y${i}`]!.size));
  const got = await run(point, seedValues);
  const objective = async (at: ReadonlyMap<string, Float32Array>) => {
    const values = await run(at, seedValues);
    return outputs.reduce((sum, _, i) => sum + dot(values[`y${i}`]!.data as Float32Array, seedValues[i]!), 0);
  };
  const epsilon = 2 ** -7;
  for (const [name, value] of point) {
    const gradient = got[`d_${name}`]!.data as Float32Array;
    for (let trial = 0; trial < 4; trial++) {
      const direction = randomArray(value.length);
      const moved = (step: number) =>
        new Map(point).set(
          name,
          value.map((x, i) => x + step * direction[i]!),
        );
      const difference = ((await objective(moved(epsilon))) - (await objective(moved(-epsilon)))) / (2 * epsilon);
      const scale = Math.max(1, Math.sqrt(dot(gradient, gradient)));
      expect(Math.abs(dot(gradient, direction) - difference) / scale).toBeLessThan(1e-3);
    }
  }
  await session.close();
}

const firstNamed = (named: Record<string, string>, dim: string) =>
  Object.keys(named).find((key) => named[key] === dim)!;

describe("gradients", () => {
  it("of sums and products, repeated ones included", async () => {
    await check({ a: [3, 4], b: [3, 4] }, (g, { a, b }) => ops.add(g, ops.mul(g, a!, b!), a!));
    await check({ a: [3, 4], b: [4] }, (g, { a, b }) => ops.mul(g, ops.add(g, a!, b!), b!), { named: { a: "n" } });
    await check({ a: [3, 4], b: [3, 1] }, (g, { a, b }) => ops.mul(g, a!, b!), { named: { a: "n", b: "n" } });
    await check({ a: [2, 3, 4], b: [] }, (g, { a, b }) => ops.mul(g, a!, b!));
  });

  it("of matrix products in all forms that the model uses", async () => {
    await check({ a: [5, 3], b: [3, 4] }, (g, { a, b }) => ops.matmul(g, a!, b!), { named: { a: "n" } });
    await check({ a: [2, 5, 3], b: [2, 3, 4] }, (g, { a, b }) => ops.matmul(g, a!, b!));
    await check({ a: [2, 5, 3], b: [2, 4, 3] }, (g, { a, b }) => ops.matmulTransposed(g, a!, b!, 0.3));
  });

  it("of changes of shape", async () => {
    await check(
      { a: [6, 4] },
      (g, { a }) => {
        const [left, right] = ops.split(g, a!, 1, [1, 3]);
        const tall = ops.reshape(g, right!, ["n", 3, 1]);
        return [ops.transpose(g, tall, [2, 0, 1]), ops.mul(g, left!, left!)];
      },
      { named: { a: "n" } },
    );
    await check({ a: [6, 4] }, (g, { a }) => {
      const unused = ops.split(g, a!, 1, [1, 3])[1]!;
      return ops.mul(g, unused, unused);
    });
    await check({ a: [2, 3, 4] }, (g, { a }) => {
      const twoNames = g.add("Reshape", [a!, ops.ints(g, [3, 2, -1])], [{ shape: ["s", 2, "t"] }])[0]!;
      const flat = g.add("Reshape", [twoNames, ops.ints(g, [2, 12])], [{ shape: [2, 12] }])[0]!;
      return ops.mul(g, flat, flat);
    });
  });

  it("of joined values", async () => {
    await check({ a: [2, 3], b: [2, 1] }, (g, { a, b }) => {
      const joined = ops.concat(g, [a!, b!, a!], 1);
      return ops.mul(g, joined, joined);
    });
  });

  it("of activations and norms", async () => {
    for (const activation of [ops.silu, ops.geluTanh, ops.tanh]) {
      await check({ a: [3, 5] }, (g, { a }) => activation(g, ops.mul(g, a!, ops.scalar(g, 3))), { named: { a: "n" } });
    }
    await check({ a: [3, 5] }, (g, { a }) => ops.softcap(g, a!, 0.7));
    await check({ a: [3, 5] }, (g, { a }) => {
      const weight = g.initializer("w", [5], Float32Array.of(1, -2, 0.5, 3, 1));
      return ops.rmsNorm(g, a!, weight, 1e-2);
    });
    await check({ a: [3, 5] }, (g, { a }) => {
      const weight = g.initializer("w", [5], Float32Array.of(1, -2, 0.5, 3, 1));
      const bias = g.initializer("b", [5], Float32Array.of(0.1, 0.2, -0.3, 0, 1));
      return ops.layerNorm(g, a!, weight, bias, 1e-2);
    });
  });

  it("of rotary positions", async () => {
    const fixed = {
      cos: floats(Float32Array.of(0.6, 0.8, 0.1, -0.5), [2, 2]),
      sin: floats(Float32Array.of(0.8, -0.6, 0.9, 0.3), [2, 2]),
      rows: int64s(BigInt64Array.of(0n, 1n), [2, 1]),
    };
    // All four dimensions of a head, and the first four of six.
    for (const headDim of [4, 6]) {
      const turned = (g: Graph, { a, cos, sin, rows }: Record<string, Value>) => ops.rotary(g, a!, rows!, cos!, sin!);
      await check({ a: [2, 2, 1, headDim] }, turned, { fixed });
    }
  });

  it("follow a custom definition past operations without a rule", async () => {
    const g = new Graph();
    const x = g.input("x", [3]);
    const rounded = g.add("Round", [ops.mul(g, x, ops.scalar(g, 4))], [{ shape: [3] }])[0]!;
    expect(() => gradients(g, new Map([[rounded, x]]), [x])).toThrow("no gradient is known for the operation Round");
    g.defineGradient(rounded, [x], (at, dy) => [ops.mul(at, dy, ops.scalar(at, 4))]);
    const seed = g.input("seed", [3]);
    g.output("dx", gradients(g, new Map([[ops.mul(g, rounded, x), seed]]), [x])[0]!);
    const session = await GraphSession.create(g, { threads: 1 });
    const one = floats(Float32Array.of(1, 1, 1), [3]);
    const { dx } = await session.run({ x: floats(Float32Array.of(0.2, 0.3, 0.6), [3]), seed: one });
    // d(round(4x) * x) = round(4x) + 4x
    for (const [i, value] of [1.8, 2.2, 4.4].entries()) expect(dx!.data[i]).toBeCloseTo(value, 5);
    await session.close();
  });

  it("include a seed on a target, and refuse a target that nothing depends on", async () => {
    const g = new Graph();
    const [x, y, seed] = [g.input("x", [2]), g.input("y", [2]), g.input("seed", [2])];
    const doubled = ops.mul(g, x, ops.scalar(g, 2));
    expect(gradients(g, new Map([[x, seed]]), [x])).toEqual([seed]);
    expect(() => gradients(g, new Map([[doubled, seed]]), [y])).toThrow("depends on y");
  });
});
