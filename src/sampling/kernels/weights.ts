// The kernels that weigh entries: a weight is an unnormalised probability, e^((entry - max) / temperature), which is
// 2^((entry - max) * octaves) with octaves = log2(e) / temperature.
// Weights are summed as floats over four vectors, then as doubles: per block, and over all blocks one after another.

import { eachBlock, eachFour, forFour, fourLocals, ifBlockReaches, rowLocals, rowParams } from "./parts.ts";
import type { Code, Local } from "./wasm.ts";
import { defineFunction, f32x4, f64, f64x2, get, i32, i32x4, set, v128 } from "./wasm.ts";

/** Entries further below the maximum than this, in units of the temperature, have weight 0: 64 octaves. */
export const weightRange = 64 * Math.LN2;

// 2^f = 1 + c1 f + ... + c6 f^6 for |f| <= 1/2, fitted for the smallest relative error: 2e-9.
const C1 = 0.6931472028555266;
const C2 = 0.24022647913604217;
const C3 = 0.055503324700364294;
const C4 = 0.009618437356975516;
const C5 = 0.0013398874871235252;
const C6 = 0.0001535336321394284;

// Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits, ready to be added to an exponent field.
const rounding = f32x4.const(12_582_912);

type WeightName = "x" | "y" | "t" | "a" | "b" | "w";
const weightLocals = fourLocals("x", "y", "t", "a", "b", "w");

/** a * b + c, rounded twice: the same on machines with and without fused multiplication. */
const plus = (a: Code, b: Code, c: Code) => f32x4.add(f32x4.mul(a, b), c);

/**
 * w = 2^((x - max) * octaves) for exponents in [-64, 0]: exactly 1 for x = max, meaningless outside. The exponent is rounded
 * to a float once, so w has a relative error of at most (1 + |exponent|) * 2^-23.
 * Each step runs for all four vectors before the next one, so that no step waits for the one before it.
 */
function powers(v: Record<`${WeightName}${0 | 1 | 2 | 3}` | "maxAll" | "octavesAll", Local>): Code {
  const each = (local: WeightName, value: (of: (name: WeightName) => Code) => Code) =>
    forFour<WeightName>(v, (of) =>
      set(
        of(local),
        value((name) => get(of(name))),
      ),
    );
  const constant = f32x4.const;
  return [
    // The exponent is t + y: an integer, in the low bits of t, and |y| <= 1/2.
    ...each("y", (of) => f32x4.mul(f32x4.sub(of("x"), get(v.maxAll)), get(v.octavesAll))),
    ...each("t", (of) => f32x4.add(of("y"), rounding)),
    ...each("y", (of) => f32x4.sub(of("y"), f32x4.sub(of("t"), rounding))),
    // 2^y = (1 + c1 y) + y^2 * ((c2 + c3 y) + y^2 * ((c4 + c5 y) + y^2 * c6)), with y^2 in w until it is known.
    ...each("w", (of) => f32x4.mul(of("y"), of("y"))),
    ...each("b", (of) => plus(of("y"), constant(C5), constant(C4))),
    ...each("a", (of) => plus(of("y"), constant(C3), constant(C2))),
    ...each("b", (of) => plus(of("w"), constant(C6), of("b"))),
    ...each("a", (of) => plus(of("w"), of("b"), of("a"))),
    ...each("y", (of) => plus(of("y"), constant(C1), constant(1))),
    ...each("w", (of) => plus(of("a"), of("w"), of("y"))),
    ...each("w", (of) => i32x4.add(of("w"), i32x4.shl(of("t"), i32.const(23)))),
  ];
}

/** `toWeights`: bytes from an entry to its weight. */
const sumParams = { ...rowParams, toWeights: "i32", sums: "i32", cut: "f32" } as const;
const doubles = { low: "v128", high: "v128", sum: "f64", total: "f64" } as const;
const sumLocals = { ...rowLocals, ...doubles, at: "i32", cutAll: "v128" } as const;
type SumName = keyof typeof sumParams | keyof typeof sumLocals | `${"x" | "w"}${0 | 1 | 2 | 3}`;

/**
 * Returns the total weight of the entries >= cut, and leaves the sum of each block in sums[]. `weights` is the code that
 * puts the weights of the vectors x0 to x3, which belong at address `at`, into w0 to w3. Its results for entries below the
 * cut do not matter.
 */
function sumWeights(v: Record<SumName, Local>, weights: Code): Code {
  const add = (to: Local, part: Code) => set(to, f64x2.add(get(to), part));
  return [
    ...set(v.cutAll, f32x4.splat(get(v.cut))),
    ...eachBlock(v, [
      ...set(v.sum, f64.zero),
      ...ifBlockReaches(v, v.cut, [
        ...set(v.low, v128.zero),
        ...set(v.high, v128.zero),
        ...eachFour(v, [
          ...set(v.at, i32.add(get(v.row), get(v.toWeights))),
          ...weights,
          ...forFour<"x" | "w">(v, (of) => {
            return set(of("w"), v128.and(get(of("w")), f32x4.ge(get(of("x")), get(v.cutAll))));
          }),
          ...set(v.w0, f32x4.add(f32x4.add(get(v.w0), get(v.w1)), f32x4.add(get(v.w2), get(v.w3)))),
          ...add(v.low, f64x2.fromLowF32(get(v.w0))),
          ...add(v.high, f64x2.fromHighF32(get(v.w0))),
        ]),
        ...add(v.low, get(v.high)),
        ...set(v.sum, f64.add(f64x2.lane(get(v.low), 0), f64x2.lane(get(v.low), 1))),
      ]),
      ...f64.store(get(v.sums), get(v.sum), 0),
      ...set(v.sums, i32.add(get(v.sums), i32.const(8))),
      ...set(v.total, f64.add(get(v.total), get(v.sum))),
    ]),
    ...get(v.total),
  ];
}

/** Writes the weight of each entry >= cut, and meaningless weights for others in their blocks. Then as `sumAtLeast`. */
export const weigh = defineFunction({
  name: "weigh",
  params: { ...sumParams, max: "f32", octaves: "f32" },
  locals: { ...sumLocals, ...weightLocals, maxAll: "v128", octavesAll: "v128" },
  result: "f64",
  body: (v) => [
    ...set(v.maxAll, f32x4.splat(get(v.max))),
    ...set(v.octavesAll, f32x4.splat(get(v.octaves))),
    ...sumWeights(v, [
      ...powers(v),
      ...forFour<"w">(v, (of, index) => v128.store(get(v.at), get(of("w")), index * 16)),
    ]),
  ],
});

/** Sums the weights that `weigh` wrote for the entries >= cut. The cut must not be below that of `weigh`. */
export const sumAtLeast = defineFunction({
  name: "sumAtLeast",
  params: sumParams,
  locals: { ...sumLocals, ...fourLocals("x", "w") },
  result: "f64",
  body: (v) =>
    sumWeights(
      v,
      forFour<"w">(v, (of, index) => set(of("w"), v128.load(get(v.at), index * 16))),
    ),
});
