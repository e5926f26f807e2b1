// The operations that the decoder and its gradient are written in: functions over traced values that append ONNX nodes
// and infer shapes. Every function takes the graph to append to, because each branch of a condition is a graph of its
// own.

import { type Dim, type Graph, MICROSOFT, type Value } from "./graph.ts";

const binary = (op: string) => (g: Graph, a: Value, b: Value) =>
  g.add(op, [a, b], [{ shape: broadcast(a.shape, b.shape), dtype: a.dtype }])[0]!;
const unary = (op: string) => (g: Graph, x: Value) => g.add(op, [x], [{ shape: x.shape, dtype: x.dtype }])[0]!;

export const add = binary("Add");
export const sub = binary("Sub");
export const mul = binary("Mul");
export const div = binary("Div");
export const max = binary("Max");
/** The larger of x and a scalar, in two thirds of the time that `max` takes. */
export const atLeast = (g: Graph, x: Value, lowest: Value) => g.add("Clip", [x, lowest], [{ shape: x.shape }])[0]!;
const comparison = (op: string) => (g: Graph, a: Value, b: Value) =>
  g.add(op, [a, b], [{ shape: broadcast(a.shape, b.shape), dtype: "bool" }])[0]!;
export const greater = comparison("Greater");
export const less = comparison("Less");
export const equal = comparison("Equal");
export const exp = unary("Exp");
export const neg = unary("Neg");
export const sqrt = unary("Sqrt");
export const tanh = unary("Tanh");
export const sigmoid = unary("Sigmoid");

/** Batched a · b, numpy broadcasting of the leading dimensions. */
export function matmul(g: Graph, a: Value, b: Value): Value {
  const batch = broadcast(a.shape.slice(0, -2), b.shape.slice(0, -2));
  return g.add("MatMul", [a, b], [{ shape: [...batch, a.shape.at(-2)!, b.shape.at(-1)!] }])[0]!;
}

/** scale * a · bᵀ. b is stored with the summed dimension last. */
export function matmulTransposed(g: Graph, a: Value, b: Value, scale = 1): Value {
  const batch = broadcast(a.shape.slice(0, -2), b.shape.slice(0, -2));
  const shape = [...batch, a.shape.at(-2)!, b.shape.at(-2)!];
  return g.add("FusedMatMul", [a, b], [{ shape }], { transB: 1, alpha: { float: scale } }, MICROSOFT)[0]!;
}

/** aᵀ · b over the last two dimensions, equal leading ones. */
export function transposedMatmul(g: Graph, a: Value, b: Value, scale = 1): Value {
  const shape = [...a.shape.slice(0, -2), a.shape.at(-1)!, b.shape.at(-1)!];
  return g.add("FusedMatMul", [a, b], [{ shape }], { transA: 1, alpha: { float: scale } }, MICROSOFT)[0]!;
}

/** a: [n, p, k], b: [p, k, m] -> [p, n, m]: a product for each of the p pieces of a row. */
export function piecesMatmul(g: Graph, a: Value, b: Value): Value {
  const shape = [a.shape[1]!, a.shape[0]!, b.shape[2]!];
  return g.add("FusedMatMul", [a, b], [{ shape }], { transBatchA: 1 }, MICROSOFT)[0]!;
}

/** scale * a · b, equal leading dimensions. */
export function scaledMatmul(g: Graph, a: Value, b: Value, scale: number): Value {
  const shape = [...a.shape.slice(0, -1), b.shape.at(-1)!];
  return g.add("FusedMatMul", [a, b], [{ shape }], { alpha: { float: scale } }, MICROSOFT)[0]!;
}

/** Softmax over the last dimension. */
export function softmax(g: Graph, x: Value): Value {
  return g.add("Softmax", [x], [{ shape: x.shape }], { axis: -1 })[0]!;
}

const reduce =
  (op: string) =>
  (g: Graph, x: Value, axis: number, keep = false) => {
    const at = axis < 0 ? x.shape.length + axis : axis;
    const shape = keep ? x.shape.with(at, 1) : x.shape.toSpliced(at, 1);
    return g.add(op, [x, ints(g, [at])], [{ shape, dtype: x.dtype }], { keepdims: keep ? 1 : 0 })[0]!;
  };
export const reduceMax = reduce("ReduceMax");
export const reduceSum = reduce("ReduceSum");
export const reduceMean = reduce("ReduceMean");

/** Rows of `x` along its first dimension, by int64 indices of any shape. */
export function gather(g: Graph, x: Value, indices: Value): Value {
  const shape = [...indices.shape, ...x.shape.slice(1)];
  return g.add("Gather", [x, indices], [{ shape, dtype: x.dtype }], { axis: 0 })[0]!;
}

export function concat(g: Graph, parts: readonly Value[], axis: number): Value {
  const sizes = parts.map((part) => part.shape[axis]!);
  const total = sizes.every((size) => typeof size === "number")
    ? sizes.reduce((sum, size) => sum + size, 0)
    : sizes.join("+");
  const shape = parts[0]!.shape.with(axis, total);
  return g.add("Concat", parts, [{ shape, dtype: parts[0]!.dtype }], { axis })[0]!;
}

/** Elements start .. end-1 along one axis. Bounds are numbers or int64 values of shape [1]. */
export function slice(g: Graph, x: Value, axis: number, start: number | Value, end: number | Value, size: Dim): Value {
  const bound = (at: number | Value) => (typeof at === "number" ? ints(g, [at]) : at);
  const inputs = [x, bound(start), bound(end), ints(g, [axis])];
  return g.add("Slice", inputs, [{ shape: x.shape.with(axis, size), dtype: x.dtype }])[0]!;
}

/** Splits into these sizes. A value that was just joined from them comes back as it was, without a copy. */
export function split(g: Graph, x: Value, axis: number, sizes: readonly number[]): Value[] {
  if (x.node?.op === "Concat" && x.node.attributes.axis === axis) {
    const parts = x.node.inputs as readonly Value[];
    if (parts.map((part) => part.shape[axis]).join() === sizes.join()) return [...parts];
  }
  const outputs = sizes.map((size) => ({ shape: x.shape.with(axis, size), dtype: x.dtype }));
  return g.add("Split", [x, ints(g, sizes)], outputs, { axis });
}

/** One dimension may be a name. It takes the remaining size. */
export function reshape(g: Graph, x: Value, shape: readonly Dim[]): Value {
  const target = ints(
    g,
    shape.map((dim) => (typeof dim === "number" ? dim : -1)),
  );
  return g.add("Reshape", [x, target], [{ shape, dtype: x.dtype }], { allowzero: 0 })[0]!;
}

export function transpose(g: Graph, x: Value, perm: readonly number[]): Value {
  const shape = perm.map((axis) => x.shape[axis]!);
  return g.add("Transpose", [x], [{ shape, dtype: x.dtype }], { perm })[0]!;
}

const normAttributes = (epsilon: number) => ({ axis: -1, epsilon: { float: epsilon }, stash_type: 1 });

/** x / rms(x) * weight over the last dimension. */
export function rmsNorm(g: Graph, x: Value, weight: Value, epsilon: number): Value {
  const attributes = normAttributes(epsilon);
  return g.add("SimplifiedLayerNormalization", [x, weight], [{ shape: x.shape }], attributes)[0]!;
}

/** (x - mean(x)) / deviation(x) * weight + bias over the last dimension. */
export function layerNorm(g: Graph, x: Value, weight: Value, bias: Value, epsilon: number): Value {
  return g.add("LayerNormalization", [x, weight, bias], [{ shape: x.shape }], normAttributes(epsilon))[0]!;
}

/** x / rms(x) over the last dimension, and 1 / rms(x), which keeps that dimension. */
export function unitRms(g: Graph, x: Value): { units: Value; inverse: Value } {
  const inputs = [x, ones(g, x.shape.at(-1) as number)];
  const outputs = [{ shape: x.shape }, { shape: x.shape.with(-1, 1) }];
  const [units, inverse] = g.add("SimplifiedLayerNormalization", inputs, outputs, normAttributes(0));
  return { units: units!, inverse: inverse! };
}

/**
 * Rotary position embedding, halves rotated against each other as in Hugging Face models.
 * x: [n, heads, 1, headDim]; rows: int64 [n, 1] = 0 .. n-1; cos, sin: [n, d / 2], one row per row of x, where d <= headDim
 * is the number of dimensions that rotate, the first ones.
 */
export function rotary(g: Graph, x: Value, rows: Value, cos: Value, sin: Value): Value {
  const [, heads, , headDim] = x.shape as readonly number[];
  const rotated = 2 * (cos.shape[1] as number);
  const attributes: Record<string, number> =
    rotated === headDim ? {} : { rotary_embedding_dim: rotated, num_heads: heads! };
  return g.add("RotaryEmbedding", [x, rows, cos, sin], [{ shape: x.shape }], attributes, MICROSOFT)[0]!;
}

/** x * sigmoid(x). */
export function silu(g: Graph, x: Value): Value {
  return g.add("QuickGelu", [x], [{ shape: x.shape }], { alpha: { float: 1 } }, MICROSOFT)[0]!;
}

/** Gaussian error linear unit, tanh form. */
export function geluTanh(g: Graph, x: Value): Value {
  return g.add("Gelu", [x], [{ shape: x.shape }], { approximate: "tanh" })[0]!;
}

/** c * tanh(x / c). */
export function softcap(g: Graph, x: Value, c: number): Value {
  const scaled = mul(g, x, scalar(g, 1 / c));
  return mul(g, tanh(g, scaled), scalar(g, c));
}

/** The k largest or smallest along the last dimension, in order, and their places. `k`: int64 [1]. */
export function topK(g: Graph, x: Value, k: Value, which: "largest" | "smallest"): readonly [Value, Value] {
  const shape = x.shape.with(-1, "k");
  const attributes = { axis: -1, largest: which === "largest" ? 1 : 0, sorted: 1 };
  const [values, places] = g.add(
    "TopK",
    [x, k],
    [
      { shape, dtype: x.dtype },
      { shape, dtype: "int64" },
    ],
    attributes,
  );
  return [values!, places!];
}

/** Zeros in the shape of `like`, with `values` at these places of the last dimension. */
export function scatterLast(g: Graph, like: Value, places: Value, values: Value): Value {
  const zeros = mul(g, like, scalar(g, 0));
  return g.add("ScatterElements", [zeros, places, values], [{ shape: like.shape }], { axis: -1 })[0]!;
}

/** `condition` is one boolean. Each branch appends to its own graph and returns results of these shapes. */
export function choose(
  g: Graph,
  condition: Value,
  shapes: readonly (readonly Dim[])[],
  branches: { yes: (sub: Graph) => readonly Value[]; no: (sub: Graph) => readonly Value[] },
): Value[] {
  const attributes: Record<string, Graph> = {};
  for (const [name, build] of [
    ["then_branch", branches.yes],
    ["else_branch", branches.no],
  ] as const) {
    const sub = g.child();
    for (const result of build(sub)) sub.handOut(result);
    attributes[name] = sub;
  }
  return g.add(
    "If",
    [condition],
    shapes.map((shape) => ({ shape })),
    attributes,
  );
}

export function scalar(g: Graph, value: number): Value {
  return g.constant(new Float32Array([value]), []);
}

export function ones(g: Graph, size: number): Value {
  return g.constant(new Float32Array(size).fill(1));
}

/** [1, size]. A product with it repeats a value [.., 1] with the same bits, faster than broadcasting. */
export function rowOfOnes(g: Graph, size: number): Value {
  return g.constant(new Float32Array(size).fill(1), [1, size]);
}

export function ints(g: Graph, values: readonly number[]): Value {
  return g.constant(BigInt64Array.from(values, BigInt));
}

function broadcast(a: readonly Dim[], b: readonly Dim[]): Dim[] {
  const rank = Math.max(a.length, b.length);
  const shape: Dim[] = [];
  for (let i = 0; i < rank; i++) {
    const x = a[a.length - rank + i] ?? 1;
    const y = b[b.length - rank + i] ?? 1;
    if (x !== y && x !== 1 && y !== 1 && typeof x === "number" && typeof y === "number") {
      throw new Error(`shapes [${a}] and [${b}] do not broadcast`);
    }
    shape.push(x === 1 ? y : x);
  }
  return shape;
}
