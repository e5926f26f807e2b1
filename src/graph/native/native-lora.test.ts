// LoraAdd, LoraNarrow and LoraWiden, operations of the native module. native/test/lora-test.c tests what they compute.

import { expect, it } from "vitest";
import { asNumbers, noise, sessionOf } from "../../../test/native/graphs.ts";
import { need, needing } from "../../../test/support/needs.ts";
import { FLYWHEEL, type Graph, type Value } from "../graph.ts";
import { add, ints } from "../ops.ts";
import { type Feeds, floats, int64s } from "../session.ts";
import { nativeModule } from "./native-module.ts";

const rows = 40;
const inputs = 101;
const parts = [75, 70];
const outputs = 145;
const header = 16;
const place = 9;
const scale = 0.5;
const ranks = [4, 16];
const begins = [8, 8 + header + 4 * (place + 2 * inputs + outputs)];

function adapted(g: Graph) {
  const [x, y] = [g.input("x", ["n", 1, inputs]), g.input("y", ["n", 1, outputs])];
  const [factors, rowBegins] = [g.input("factors", ["floats"]), g.input("begins", ["n"], "int64")];
  const [residual, shape] = [g.input("residual", ["n", 1, outputs]), ["n", 1, outputs]];
  const attributes = { header, place, first_flag: 3 };
  const operands = (with_: typeof x | null) => [add(g, y, y), x, factors, with_, rowBegins, ints(g, parts)];
  const [plain] = g.add("LoraAdd", operands(null), [{ shape }], attributes, FLYWHEEL);
  const [summed] = g.add("LoraAdd", operands(residual), [{ shape }], attributes, FLYWHEEL);
  return { plain: plain!, summed: summed! };
}

/** Row i has no adapter, or adapter i mod 3 - 1. */
function feedsOf(): Feeds {
  const factors = noise(begins[1]! + header + 16 * (place + 2 * inputs + outputs), 5);
  for (const [i, begin] of begins.entries()) factors.set([ranks[i]!, scale, 9, 9, 9, 1, 1], begin);
  return {
    x: floats(noise(rows * inputs, 3), [rows, 1, inputs]),
    y: floats(noise(rows * outputs, 7), [rows, 1, outputs]),
    residual: floats(noise(rows * outputs, 11), [rows, 1, outputs]),
    factors: floats(factors, [factors.length]),
    begins: int64s(
      BigInt64Array.from({ length: rows }, (_, i) => BigInt(i % 3 === 0 ? -1 : begins[(i % 3) - 1]!)),
      [rows],
    ),
  };
}

async function run(feeds: Feeds, threads = 1): Promise<{ plain: number[]; summed: number[] }> {
  const session = await sessionOf(adapted, threads);
  try {
    const { plain, summed } = await session.run(feeds, { plain: null, summed: null });
    return { plain: asNumbers(plain), summed: asNumbers(summed) };
  } finally {
    await session.release();
  }
}

/** Where numbers of factor B of `part` lie, in panels of 64 outputs. */
function placeInB(rank: number, part: number, r: number, output: number): number {
  const first = output - (output % 64);
  const before = part === 0 ? 0 : parts[0]! * rank;
  return before + first * rank + r * Math.min(64, parts[part]! - first) + output - first;
}

function expected(feeds: Feeds, row: number, output: number): number {
  const [x, y, factors] = [feeds.x!, feeds.y!, feeds.factors!].map(({ data }) => data as Float32Array);
  const base = 2 * y![row * outputs + output]!;
  if (row % 3 === 0) return base;
  const rank = ranks[(row % 3) - 1]!;
  const [part, ofPart] = output < parts[0]! ? [0, output] : [1, output - parts[0]!];
  const a = begins[(row % 3) - 1]! + header + rank * place;
  const b = a + 2 * rank * inputs;
  let sum = 0;
  for (let r = 0; r < rank; r++) {
    let t = 0;
    for (let i = 0; i < inputs; i++) t += x![row * inputs + i]! * factors![a + (part * rank + r) * inputs + i]!;
    sum += t * scale * factors![b + placeInB(rank, part, r, ofPart)]!;
  }
  return base + sum;
}

needing(need("the native module", nativeModule !== null)).describe("adapters", () => {
  it("adds to every row what its own adapter does, then the residual", async () => {
    const feeds = feedsOf();
    const found = await run(feeds);
    const residual = feeds.residual!.data as Float32Array;
    for (let i = 0; i < rows * outputs; i++) {
      const value = expected(feeds, Math.floor(i / outputs), i % outputs);
      expect(Math.abs(found.plain[i]! - value)).toBeLessThan(1e-4);
      expect(found.summed[i]).toBe(Math.fround(found.plain[i]! + residual[i]!));
    }
    expect(await run(feeds, 3)).toEqual(found);
  });

  it("refuses inputs that do not fit", async () => {
    const feeds = feedsOf();
    const short = (feeds.factors!.data as Float32Array).slice(0, -1);
    await expect(run({ ...feeds, factors: floats(short, [short.length]) })).rejects.toThrow(/no adapter at its place/);
    const all = (begin: number) => int64s(new BigInt64Array(rows).fill(BigInt(begin)), [rows]);
    await expect(run({ ...feeds, begins: all(short.length + 2) })).rejects.toThrow(/no adapter at its place/);
    await expect(run({ ...feeds, begins: all(begins[0]! + 1) })).rejects.toThrow(/no adapter at its place/);
    await expect(run({ ...feeds, x: floats(noise(inputs), [1, 1, inputs]) })).rejects.toThrow();
  });

  it("are part of an int8 map, with the same bits", async () => {
    const [values, scales] = [Int8Array.from(noise(inputs * outputs), (x) => Math.round(127 * x)), noise(outputs, 4)];
    const weights = nativeModule!.packInt8(values, scales, null, inputs, outputs);
    const { y: _, ...feeds } = feedsOf();
    const shape = ["n", 1, outputs];
    const attributes = { header, place, first_flag: 3 };
    const ends = async (build: (g: Graph) => Value, threads: number, begins = feeds.begins!) => {
      const session = await sessionOf((g) => ({ y: build(g) }), threads);
      try {
        return asNumbers((await session.run({ ...feeds, begins }, { y: null })).y);
      } finally {
        await session.release();
      }
    };
    const given = (g: Graph) => ({
      x: g.input("x", ["n", 1, inputs]),
      factors: g.input("factors", ["floats"]),
      begins: g.input("begins", ["n"], "int64"),
      residual: g.input("residual", shape),
    });
    const together = (g: Graph) => {
      const { x, factors, begins, residual } = given(g);
      const operands = [x, null, residual, factors, begins, ints(g, parts)];
      return g.add("Int8Linear", operands, [{ shape }], { weights, ...attributes }, FLYWHEEL)[0]!;
    };
    const apart = (g: Graph) => {
      const { x, factors, begins, residual } = given(g);
      const [y] = g.add("Int8Linear", [x], [{ shape }], { weights }, FLYWHEEL);
      return g.add(
        "LoraAdd",
        [y!, x, factors, residual, begins, ints(g, parts)],
        [{ shape }],
        attributes,
        FLYWHEEL,
      )[0]!;
    };
    const none = int64s(new BigInt64Array(rows).fill(-1n), [rows]);
    for (const threads of [1, 3, 16]) {
      expect(await ends(together, threads)).toEqual(await ends(apart, 1));
      expect(await ends(together, threads, none)).toEqual(await ends(apart, 1, none));
    }
    const all = (begin: number) => int64s(new BigInt64Array(rows).fill(BigInt(begin)), [rows]);
    await expect(ends(together, 1, all(begins[0]! + 1))).rejects.toThrow(/no adapter at its place/);
    const without = await sessionOf((g) => {
      const x = g.input("x", ["n", 1, inputs]);
      return { y: g.add("Int8Linear", [x], [{ shape }], { weights, ...attributes }, FLYWHEEL)[0]! };
    });
    await expect(without.run({ x: feeds.x! }, { y: null })).rejects.toThrow(/come together/);
    await without.release();
    nativeModule!.releaseWeights(weights);
  });

  it("offers the two halves, with the same bits", async () => {
    const feeds = feedsOf();
    const factors = feeds.factors!.data as Float32Array;
    const rank = ranks[0]!;
    const first = begins[0]! + header + rank * place;
    const a = Float32Array.from({ length: inputs * rank }, (_, i) => {
      return factors[first + (i % rank) * inputs + Math.floor(i / rank)]!;
    });
    const b = Float32Array.from({ length: rank * parts[0]! }, (_, i) => {
      const place = placeInB(rank, 0, Math.floor(i / parts[0]!), i % parts[0]!);
      return factors[first + 2 * rank * inputs + place]! * scale;
    });
    const session = await sessionOf((g) => {
      const [x, a] = [g.input("x", ["n", 1, inputs]), g.input("a", [inputs, rank])];
      const [t] = g.add("LoraNarrow", [x, a], [{ shape: ["n", rank] }], {}, FLYWHEEL);
      const b = g.input("b", [rank, parts[0]!]);
      const [y] = g.add("LoraWiden", [t!, b], [{ shape: ["n", parts[0]!] }], {}, FLYWHEEL);
      return { y: y! };
    });
    const given = { x: feeds.x!, a: floats(a, [inputs, rank]), b: floats(b, [rank, parts[0]!]) };
    const halves = asNumbers((await session.run(given, { y: null })).y);
    const zero = floats(new Float32Array(rows * outputs), [rows, 1, outputs]);
    const whole = (await run({ ...feeds, y: zero })).plain;
    for (let row = 1; row < rows; row += 3) {
      // Half of everything: the scale is a power of two.
      const own = halves.slice(row * parts[0]!, (row + 1) * parts[0]!);
      expect(own).toEqual(whole.slice(row * outputs, row * outputs + parts[0]!));
    }
    await expect(session.run({ ...given, a: floats(noise(4), [1, 4]) }, { y: null })).rejects.toThrow();
    await session.release();
  });
});
