// The kernels that find entries: maxima, counts and ids. They skip blocks whose largest entry is too small.

import {
  BLOCK_ENTRIES,
  eachBlock,
  eachFour,
  eachVector,
  forFour,
  fourLocals,
  ifBlockReaches,
  keyDistance,
  rowLocals,
  rowParams,
} from "./parts.ts";
import type { Code, Local } from "./wasm.ts";
import { defineFunction, f32, f32x4, get, i32, i32x4, ifThen, repeatWhile, returnValue, set, v128 } from "./wasm.ts";

/** Buckets of the histogram kernel. One more takes the entries outside its range. */
export const HISTOGRAM_BUCKETS = 2048;

/** Writes the largest entry of each block to maxima[]. Returns 1 if the row holds a NaN, else 0. */
export const scan = defineFunction({
  name: "scan",
  params: rowParams,
  locals: { ...rowLocals, ...fourLocals("x", "best", "invalid") },
  result: "i32",
  body: (v) => {
    const best = (index: number) => f32x4.lane(get(v.best0), index);
    const pmax = (a: Local, b: Local) => f32x4.pmax(get(a), get(b));
    return [
      ...eachBlock(v, [
        ...forFour<"best">(v, (of) => set(of("best"), f32x4.const(Number.NEGATIVE_INFINITY))),
        ...eachFour(
          v,
          forFour<"x" | "best" | "invalid">(v, (of) => [
            ...set(of("best"), pmax(of("best"), of("x"))),
            ...set(of("invalid"), v128.or(get(of("invalid")), f32x4.ne(get(of("x")), get(of("x"))))),
          ]),
        ),
        ...set(v.best0, f32x4.pmax(pmax(v.best0, v.best1), pmax(v.best2, v.best3))),
        ...f32.store(get(v.maxima), f32.max(f32.max(best(0), best(1)), f32.max(best(2), best(3))), 0),
      ]),
      ...v128.anyTrue(v128.or(v128.or(get(v.invalid0), get(v.invalid1)), v128.or(get(v.invalid2), get(v.invalid3)))),
    ];
  },
});

/**
 * Counts the entries with keys in [hiKey - span, hiKey], which are the floats in [cut, top], by (hiKey - key) >> shift.
 * Each lane has its own counts, counts[bucket][lane], because additions to one count would wait for each other.
 */
export const histogram = defineFunction({
  name: "histogram",
  params: { ...rowParams, counts: "i32", hiKey: "i32", shift: "i32", cut: "f32", top: "f32" },
  locals: { ...rowLocals, ...fourLocals("x", "inside"), bits: "v128", distance: "v128", at: "i32" },
  result: null,
  body: (v) => {
    const count = (lane: number): Code => [
      ...set(v.at, i32.add(get(v.counts), i32.shl(i32x4.lane(get(v.distance), lane), i32.const(4)))),
      ...i32.store(get(v.at), i32.add(i32.load(get(v.at), lane * 4), i32.const(1)), lane * 4),
    ];
    const outside = i32x4.const(HISTOGRAM_BUCKETS);
    const bucket = (inside: Local) => v128.select(i32x4.shrU(get(v.distance), get(v.shift)), outside, get(inside));
    const either = (a: Code, b: Code) => v128.or(a, b);
    return eachBlock(
      v,
      ifBlockReaches(
        v,
        v.cut,
        eachFour(v, [
          ...forFour<"x" | "inside">(v, (of) => {
            const reaches = f32x4.ge(get(of("x")), f32x4.splat(get(v.cut)));
            return set(of("inside"), v128.and(reaches, f32x4.ge(f32x4.splat(get(v.top)), get(of("x")))));
          }),
          ...ifThen(
            v128.anyTrue(either(either(get(v.inside0), get(v.inside1)), either(get(v.inside2), get(v.inside3)))),
            forFour<"x" | "inside">(v, (of) =>
              ifThen(v128.anyTrue(get(of("inside"))), [
                ...keyDistance({ ...v, x: of("x") }),
                ...set(v.distance, bucket(of("inside"))),
                ...[0, 1, 2, 3].flatMap(count),
              ]),
            ),
          ),
        ]),
      ),
    );
  },
});

/** The first bucket up to which `histogram` counted `need` entries, or `histogramBuckets`. above[0]: those before it. */
export const findBucket = defineFunction({
  name: "findBucket",
  params: { counts: "i32", need: "i32", above: "i32" },
  locals: { bucket: "i32", lanes: "v128", found: "i32", before: "i32" },
  result: "i32",
  body: (v) => {
    const lane = (index: number) => i32x4.lane(get(v.lanes), index);
    return [
      ...repeatWhile(
        [
          ...set(v.lanes, v128.load(get(v.counts), 0)),
          ...set(v.found, i32.add(i32.add(lane(0), lane(1)), i32.add(lane(2), lane(3)))),
          ...ifThen(i32.geS(i32.add(get(v.before), get(v.found)), get(v.need)), [
            ...i32.store(get(v.above), get(v.before), 0),
            ...returnValue(get(v.bucket)),
          ]),
          ...set(v.before, i32.add(get(v.before), get(v.found))),
          ...set(v.counts, i32.add(get(v.counts), i32.const(16))),
          ...set(v.bucket, i32.add(get(v.bucket), i32.const(1))),
        ],
        i32.sub(i32.const(HISTOGRAM_BUCKETS), get(v.bucket)),
      ),
      ...get(v.bucket),
    ];
  },
});

/** Writes the ids of the entries whose key lies in [hiKey - span, hiKey] to out[], ascending, at most `limit` (> 0). */
export const gather = defineFunction({
  name: "gather",
  params: { ...rowParams, hiKey: "i32", span: "i32", cut: "f32", out: "i32", limit: "i32" },
  locals: {
    ...{ ...rowLocals, x: "v128", bits: "v128", distance: "v128" },
    ...{ lanes: "i32", firstId: "i32", id: "i32", found: "i32" },
  },
  result: "i32",
  body: (v) => [
    ...eachBlock(v, [
      ...set(v.id, get(v.firstId)),
      ...set(v.firstId, i32.add(get(v.firstId), i32.const(BLOCK_ENTRIES))),
      ...ifBlockReaches(
        v,
        v.cut,
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
export const countAtLeast = defineFunction({
  name: "countAtLeast",
  params: { ...rowParams, value: "f32" },
  locals: { ...rowLocals, ...fourLocals("x", "counts") },
  result: "i32",
  body: (v) => {
    const sum = (a: Code, b: Code) => i32x4.add(a, b);
    const count = (index: number) => i32x4.lane(get(v.counts0), index);
    return [
      ...eachBlock(
        v,
        ifBlockReaches(
          v,
          v.value,
          eachFour(
            v,
            forFour<"x" | "counts">(v, (of) =>
              // A true comparison is -1.
              set(of("counts"), i32x4.sub(get(of("counts")), f32x4.ge(get(of("x")), f32x4.splat(get(v.value))))),
            ),
          ),
        ),
      ),
      ...set(v.counts0, sum(sum(get(v.counts0), get(v.counts1)), sum(get(v.counts2), get(v.counts3)))),
      ...i32.add(i32.add(count(0), count(1)), i32.add(count(2), count(3))),
    ];
  },
});
