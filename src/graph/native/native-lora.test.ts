// LoraNarrow and LoraWiden, operations of the native module.

import { describe, expect, it } from "vitest";
import { asNumbers, noise, sessionOf } from "../../../test/native/graphs.ts";
import { FLYWHEEL, type Graph } from "../graph.ts";
import { type Feeds, floats } from "../session.ts";
import { nativeModule } from "./native-module.ts";

const inputs = 101;
const outputs = 75;

function adapters(g: Graph) {
  const [x, a] = [g.input("x", ["n", 1, inputs]), g.input("a", [inputs, "columns"])];
  const [mask, b] = [g.input("mask", ["n", "columns"]), g.input("b", ["columns", outputs])];
  const [t] = g.add("LoraNarrow", [x, a, mask], [{ shape: ["n", "columns"] }], {}, FLYWHEEL);
  const [y] = g.add("LoraWiden", [t!, b], [{ shape: ["n", outputs] }], {}, FLYWHEEL);
  return { t: t!, y: y! };
}

/** Row i uses the adapter i mod `count`, whose columns begin at `rank` times that. */
function feedsOf(rows: number, count: number, rank: number): Feeds {
  const columns = count * rank;
  const mask = Float32Array.from({ length: rows * columns }, (_, i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    return Math.floor(column / rank) === row % count ? 0.5 : 0;
  });
  return {
    x: floats(noise(rows * inputs, 3), [rows, 1, inputs]),
    a: floats(noise(inputs * columns, 5), [inputs, columns]),
    mask: floats(mask, [rows, columns]),
    b: floats(noise(columns * outputs, 7), [columns, outputs]),
  };
}

async function run(feeds: Feeds, threads = 1): Promise<{ t: number[]; y: number[] }> {
  const session = await sessionOf(adapters, threads);
  try {
    const { t, y } = await session.run(feeds, { t: null, y: null });
    return { t: asNumbers(t), y: asNumbers(y) };
  } finally {
    await session.release();
  }
}

describe.skipIf(nativeModule === null)("adapters", () => {
  it.each([
    [1, 1, 2],
    [7, 3, 4],
    [40, 8, 16],
    [300, 2, 33],
  ])("%i rows with %i adapters of rank %i", async (rows, count, rank) => {
    const feeds = feedsOf(rows, count, rank);
    const [x, a, mask, b] = [feeds.x!, feeds.a!, feeds.mask!, feeds.b!].map(({ data }) => data as Float32Array);
    const columns = count * rank;
    const t = Array.from({ length: rows * columns }, (_, i) => {
      const [row, column] = [Math.floor(i / columns), i % columns];
      let sum = 0;
      for (let k = 0; k < inputs; k++) sum += x![row * inputs + k]! * a![k * columns + column]!;
      return sum * mask![i]!;
    });
    const found = await run(feeds);
    for (const [i, value] of found.t.entries()) expect(Math.abs(value - t[i]!)).toBeLessThan(1e-5);
    for (const [i, value] of found.y.entries()) {
      const [row, output] = [Math.floor(i / outputs), i % outputs];
      let sum = 0;
      for (let k = 0; k < columns; k++) sum += t[row * columns + k]! * b![k * outputs + output]!;
      expect(Math.abs(value - sum)).toBeLessThan(1e-4);
    }
    expect(await run(feeds, 3)).toEqual(found);
  });

  it("gives a row the same bits beside other adapters", async () => {
    const [alone, beside] = [feedsOf(1, 1, 4), feedsOf(1, 3, 4)];
    for (let k = 0; k < inputs; k++) {
      const own = (alone.a!.data as Float32Array).subarray(k * 4, (k + 1) * 4);
      (beside.a!.data as Float32Array).set(own, k * 12);
    }
    (beside.b!.data as Float32Array).set(alone.b!.data as Float32Array);
    expect((await run(beside)).y).toEqual((await run(alone)).y);
  });

  it("adds nothing without columns, and refuses factors that do not fit", async () => {
    const none = feedsOf(2, 1, 0);
    expect(await run(none)).toEqual({ t: [], y: new Array(2 * outputs).fill(0) });
    const feeds = feedsOf(2, 1, 4);
    await expect(run({ ...feeds, a: floats(noise(4), [1, 4]) })).rejects.toThrow(/inputs/);
    await expect(run({ ...feeds, mask: floats(noise(4), [1, 4]) })).rejects.toThrow(/mask/);
    await expect(run({ ...feeds, b: floats(noise(outputs), [1, outputs]) })).rejects.toThrow(/fit/);
  });
});
