// Graphs run for real: what ops.ts says an operation computes is what the runtime computes.

import { describe, expect, it } from "vitest";
import { Graph, type Value } from "./graph.ts";
import * as ops from "./ops.ts";
import { bools, type Feeds, floats, GraphSession, int64s } from "./session.ts";

async function evaluate(
  build: (g: Graph) => Value,
  feeds: Feeds,
): Promise<{ data: number[]; shape: readonly number[] }> {
  const g = new Graph();
  g.output("result", build(g));
  const session = await GraphSession.create(g, { threads: 1 });
  const { result } = await session.run(feeds);
  await session.close();
  return { data: Array.from(result!.data as Float32Array), shape: result!.dims };
}

const matrix = floats(Float32Array.of(1, 2, 3, 4, 5, 6), [2, 3]);

describe("operations", () => {
  it("multiplies by a transposed matrix with a factor", async () => {
    const { data, shape } = await evaluate(
      (g) => ops.matmulTransposed(g, g.input("a", ["n", 3]), g.input("b", ["m", 3]), 0.5),
      {
        a: matrix,
        b: matrix,
      },
    );
    expect(shape).toEqual([2, 2]);
    expect(data).toEqual([7, 16, 16, 38.5]);
  });

  it("chooses a branch and lets it see outer values", async () => {
    for (const [condition, expected] of [
      [1, 12],
      [0, 3],
    ] as const) {
      const { data } = await evaluate(
        (g) => {
          const x = g.input("x", [1]);
          const tripled = ops.mul(g, x, ops.scalar(g, 3));
          const [first, second] = ops.choose(g, g.input("condition", [], "bool"), [[1], [1]], {
            yes: (sub) => [ops.mul(sub, tripled, ops.scalar(sub, 4)), x],
            no: () => [tripled, x],
          });
          return ops.mul(g, first!, second!);
        },
        { x: floats(Float32Array.of(1), [1]), condition: bools(Uint8Array.of(condition), []) },
      );
      expect(data).toEqual([expected]);
    }
  });

  it("rotates halves against each other", async () => {
    const { data } = await evaluate(
      (g) =>
        ops.rotary(
          g,
          g.input("x", ["n", 2, 1, 2]),
          g.input("rows", ["n", 1], "int64"),
          g.input("cos", ["n", 1]),
          g.input("sin", ["n", 1]),
        ),
      {
        x: floats(Float32Array.of(1, 2, 3, 4), [1, 2, 1, 2]),
        cos: floats(Float32Array.of(0.5), [1, 1]),
        sin: floats(Float32Array.of(2), [1, 1]),
        rows: int64s(BigInt64Array.of(0n), [1, 1]),
      },
    );
    // Two heads of size 2: (a, b) -> (a cos - b sin, b cos + a sin).
    expect(data).toEqual([0.5 - 4, 1 + 2, 1.5 - 8, 2 + 6]);
  });

  it("normalises by the root mean square, and computes both activations", async () => {
    const weight = Float32Array.of(1, 2, 3);
    const norm = await evaluate((g) => ops.rmsNorm(g, g.input("a", ["n", 3]), g.initializer("w", [3], weight), 0), {
      a: matrix,
    });
    const rms = Math.sqrt((1 + 4 + 9) / 3);
    for (const [i, value] of [1 / rms, 4 / rms, 9 / rms].entries()) expect(norm.data[i]).toBeCloseTo(value, 6);
    const silu = await evaluate((g) => ops.silu(g, g.input("a", ["n", 3])), { a: matrix });
    const gelu = await evaluate((g) => ops.geluTanh(g, g.input("a", ["n", 3])), { a: matrix });
    for (const [i, x] of [1, 2, 3, 4, 5, 6].entries()) {
      expect(silu.data[i]).toBeCloseTo(x / (1 + Math.exp(-x)), 5);
      expect(gelu.data[i]).toBeCloseTo(0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))), 5);
    }
  });

  it("does not change the arithmetic of this thread", async () => {
    await evaluate((g) => ops.exp(g, g.input("a", ["n", 3])), { a: matrix });
    // The runtime can be told to drop subnormal numbers; the thread's JavaScript would then do so too.
    expect([1e-310, 3].reduce((a, b) => a * b)).toBeGreaterThan(0);
  });

  it("refuses shapes that do not broadcast, when the graph is built", () => {
    const g = new Graph();
    expect(() => ops.add(g, g.input("a", [2]), g.input("b", [3]))).toThrow("do not broadcast");
  });

  it("shares equal constants, even with branches", () => {
    const g = new Graph();
    expect(ops.ints(g.child(), [1, 2])).toBe(ops.ints(g, [1, 2]));
    expect(ops.ints(g, [1])).not.toBe(ops.scalar(g, 1));
  });
});

it("writes an output to given memory, even from a branch", async () => {
  const g = new Graph();
  const x = g.input("x", ["n", 3]);
  const [turned] = ops.choose(g, g.input("turn", [], "bool"), [["a", "b"]], {
    yes: (sub) => [ops.transpose(sub, x, [1, 0])],
    no: () => [x],
  });
  g.output("turned", turned!);
  g.output("twice", ops.add(g, x, x));
  const session = await GraphSession.create(g, { threads: 1 });
  for (const [turn, shape, expected] of [
    [1, [3, 2], [1, 4, 2, 5, 3, 6]],
    [0, [2, 3], [1, 2, 3, 4, 5, 6]],
  ] as const) {
    const memory = new Float32Array(10).fill(-1);
    const into = { turned: floats(memory.subarray(2, 8), shape) };
    const feeds = { x: matrix, turn: bools(Uint8Array.of(turn), []) };
    const { turned: handedOut, twice } = await session.run(feeds, ["turned", "twice"], into);
    expect([...memory]).toEqual([-1, -1, ...expected, -1, -1]);
    expect([...(handedOut!.data as Float32Array)]).toEqual(expected);
    expect([...(twice!.data as Float32Array)]).toEqual([2, 4, 6, 8, 10, 12]);
  }
  await session.close();
});

it("lets its threads sleep soon after a run", async () => {
  const g = new Graph();
  const x = g.input("x", ["n", 256]);
  g.output("y", ops.matmul(g, x, g.initializer("w", [256, 256], new Float32Array(256 * 256).fill(0.5))));
  const session = await GraphSession.create(g, { threads: 8 });
  const feeds = { x: floats(new Float32Array(512 * 256).fill(1), [512, 256]) };
  // The least of several, because other work of this process counts too.
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 3; i++) {
    await session.run(feeds);
    const before = process.cpuUsage();
    await new Promise((resolve) => setTimeout(resolve, 200));
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, user + system);
  }
  await session.close();
  expect(least).toBeLessThan(10_000);
});
