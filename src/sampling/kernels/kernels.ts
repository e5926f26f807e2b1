// The loops over the vocabulary, as WebAssembly SIMD: plain JavaScript needs about 2 ns per entry for the simplest
// pass and 10 ns for one with exp, these a fifth to a tenth of that. Results are bit-identical on every machine: no
// relaxed instructions, one fixed order of additions. Passes skip blocks whose largest entry is below what they seek.

import {
  blockEntries,
  blockWeightsAddress,
  countAddress,
  eachBlock,
  eachVector,
  histogramBuckets,
  keyDistance,
  weight,
} from "./parts.ts";
import type { Code } from "./wasm.ts";
import {
  defineFunction,
  encodeModule,
  f32,
  f32x4,
  f64,
  f64x2,
  get,
  i32,
  i32x4,
  ifElse,
  ifThen,
  repeatWhile,
  returnValue,
  set,
  v128,
} from "./wasm.ts";

const rowParams = { row: "i32", blocks: "i32", maxima: "i32" } as const;
const rowLocals = { next: "i32", end: "i32", x: "v128" } as const;
const weightLocals = { y: "v128", t: "v128", r: "v128", w: "v128" } as const;

/** Writes the largest entry of each block to maxima[]; returns 1 if the row holds a NaN, else 0. */
const scan = defineFunction({
  name: "scan",
  params: rowParams,
  locals: { ...rowLocals, best: "v128", invalid: "v128" },
  result: "i32",
  body: (v) => {
    const best = (index: number) => f32x4.lane(get(v.best), index);
    return [
      ...eachBlock(v, [
        ...set(v.best, f32x4.const(Number.NEGATIVE_INFINITY)),
        ...eachVector(v, [
          ...set(v.best, f32x4.pmax(get(v.best), get(v.x))),
          ...set(v.invalid, v128.or(get(v.invalid), f32x4.ne(get(v.x), get(v.x)))),
        ]),
        ...f32.store(get(v.maxima), f32.max(f32.max(best(0), best(1)), f32.max(best(2), best(3))), 0),
      ]),
      ...v128.anyTrue(get(v.invalid)),
    ];
  },
});

/** Sums the weights of each block (of its entries >= cut) into sums[]; returns their total. */
const weigh = defineFunction({
  name: "weigh",
  params: { ...rowParams, sums: "i32", max: "f32", inverseTemperature: "f32", cut: "f32" },
  locals: { ...rowLocals, ...weightLocals, low: "v128", high: "v128", sum: "f64", total: "f64" },
  result: "f64",
  body: (v) => [
    ...eachBlock(v, [
      ...set(v.sum, f64.zero),
      ...ifThen(f32.ge(f32.load(get(v.maxima), 0), get(v.cut)), [
        ...set(v.low, v128.zero),
        ...set(v.high, v128.zero),
        ...eachVector(v, [
          ...weight(v),
          ...set(v.low, f64x2.add(get(v.low), f64x2.fromLowF32(get(v.w)))),
          ...set(v.high, f64x2.add(get(v.high), f64x2.fromHighF32(get(v.w)))),
        ]),
        ...set(v.low, f64x2.add(get(v.low), get(v.high))),
        ...set(v.sum, f64.add(f64x2.lane(get(v.low), 0), f64x2.lane(get(v.low), 1))),
      ]),
      ...f64.store(get(v.sums), get(v.sum), 0),
      ...set(v.sums, i32.add(get(v.sums), i32.const(8))),
      ...set(v.total, f64.add(get(v.total), get(v.sum))),
    ]),
    ...get(v.total),
  ],
});

/** Writes the weights of the one block at `row` to blockWeightsAddress. */
const weighBlock = defineFunction({
  name: "weighBlock",
  params: { row: "i32", max: "f32", inverseTemperature: "f32", cut: "f32" },
  locals: { end: "i32", x: "v128", ...weightLocals, out: "i32" },
  result: null,
  body: (v) =>
    eachVector(v, [
      ...weight(v),
      ...v128.store(get(v.out), get(v.w), blockWeightsAddress),
      ...set(v.out, i32.add(get(v.out), i32.const(16))),
    ]),
});

/** Counts the entries with keys in [hiKey - span, hiKey] by (hiKey - key) >> shift; `cut` is their lowest float. */
const histogram = defineFunction({
  name: "histogram",
  params: { ...rowParams, hiKey: "i32", span: "i32", shift: "i32", cut: "f32" },
  locals: { ...rowLocals, bits: "v128", distance: "v128", inside: "v128", at: "i32" },
  result: null,
  body: (v) => {
    const bucket = (index: number) => i32x4.lane(get(v.distance), index);
    const add = (to: Code, count: number): Code => [
      ...set(v.at, i32.shl(to, i32.const(2))),
      ...i32.store(get(v.at), i32.add(i32.load(get(v.at), countAddress), i32.const(count)), countAddress),
    ];
    return eachBlock(
      v,
      ifThen(
        f32.ge(f32.load(get(v.maxima), 0), get(v.cut)),
        eachVector(v, [
          ...keyDistance(v),
          ...set(v.inside, i32x4.leU(get(v.distance), i32x4.splat(get(v.span)))),
          ...ifThen(v128.anyTrue(get(v.inside)), [
            ...set(
              v.distance,
              v128.select(i32x4.shrU(get(v.distance), get(v.shift)), i32x4.const(histogramBuckets), get(v.inside)),
            ),
            // Entries of a flat row share a bucket, where each addition would wait for the one before.
            ...ifElse(
              i32x4.allTrue(i32x4.eq(get(v.distance), i32x4.splat(bucket(0)))),
              add(bucket(0), 4),
              [0, 1, 2, 3].flatMap((index) => add(bucket(index), 1)),
            ),
          ]),
        ]),
      ),
    );
  },
});

/** Writes the ids of the entries whose key lies in [hiKey - span, hiKey] to out[], ascending, at most `limit` (> 0). */
const gather = defineFunction({
  name: "gather",
  params: { ...rowParams, hiKey: "i32", span: "i32", cut: "f32", out: "i32", limit: "i32" },
  locals: { ...rowLocals, bits: "v128", distance: "v128", lanes: "i32", firstId: "i32", id: "i32", found: "i32" },
  result: "i32",
  body: (v) => [
    ...eachBlock(v, [
      ...set(v.id, get(v.firstId)),
      ...set(v.firstId, i32.add(get(v.firstId), i32.const(blockEntries))),
      ...ifThen(
        f32.ge(f32.load(get(v.maxima), 0), get(v.cut)),
        eachVector(v, [
          ...keyDistance(v),
          ...set(v.lanes, i32x4.bitmask(i32x4.leU(get(v.distance), i32x4.splat(get(v.span))))),
          ...ifThen(
            get(v.lanes),
            repeatWhile(
              [
                ...i32.store(get(v.out), i32.add(get(v.id), i32.ctz(get(v.lanes))), 0),
                ...set(v.out, i32.add(get(v.out), i32.const(4))),
                ...set(v.found, i32.add(get(v.found), i32.const(1))),
                ...ifThen(i32.eq(get(v.found), get(v.limit)), returnValue(get(v.found))),
                ...set(v.lanes, i32.and(get(v.lanes), i32.sub(get(v.lanes), i32.const(1)))),
              ],
              get(v.lanes),
            ),
          ),
          ...set(v.id, i32.add(get(v.id), i32.const(4))),
        ]),
      ),
    ]),
    ...get(v.found),
  ],
});

/** How many entries are >= value. */
const countAtLeast = defineFunction({
  name: "countAtLeast",
  params: { ...rowParams, value: "f32" },
  locals: { ...rowLocals, counts: "v128" },
  result: "i32",
  body: (v) => {
    const count = (index: number) => i32x4.lane(get(v.counts), index);
    return [
      ...eachBlock(
        v,
        ifThen(
          f32.ge(f32.load(get(v.maxima), 0), get(v.value)),
          // A true comparison is -1.
          eachVector(v, set(v.counts, i32x4.sub(get(v.counts), f32x4.ge(get(v.x), f32x4.splat(get(v.value)))))),
        ),
      ),
      ...i32.add(i32.add(count(0), count(1)), i32.add(count(2), count(3))),
    ];
  },
});

/** Addresses are bytes; `row` and `maxima` describe a row as `scan` left it, `blocks` (> 0) is its length in blocks. */
export interface Kernels {
  scan(row: number, blocks: number, maxima: number): number;
  weigh(
    row: number,
    blocks: number,
    maxima: number,
    sums: number,
    max: number,
    inverseTemperature: number,
    cut: number,
  ): number;
  weighBlock(row: number, max: number, inverseTemperature: number, cut: number): void;
  histogram(row: number, blocks: number, maxima: number, hiKey: number, span: number, shift: number, cut: number): void;
  gather(
    row: number,
    blocks: number,
    maxima: number,
    hiKey: number,
    span: number,
    cut: number,
    out: number,
    limit: number,
  ): number;
  countAtLeast(row: number, blocks: number, maxima: number, value: number): number;
}

// What this file needs of the WebAssembly globals; Node's types do not declare them.
declare const WebAssembly: {
  Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  Instance: new (module: object, imports: { host: { memory: KernelMemory } }) => { exports: unknown };
  Memory: new (descriptor: { initial: number }) => KernelMemory;
};

export interface KernelMemory {
  readonly buffer: ArrayBuffer;
}

const compiled = new WebAssembly.Module(encodeModule([scan, weigh, weighBlock, histogram, gather, countAtLeast]));

/** The kernels over a fresh memory of at least `bytes`. */
export function instantiateKernels(bytes: number): { kernels: Kernels; memory: KernelMemory } {
  const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / 65_536) });
  return { kernels: new WebAssembly.Instance(compiled, { host: { memory } }).exports as Kernels, memory };
}
