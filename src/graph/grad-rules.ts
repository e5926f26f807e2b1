// One rule per operation that a model's trace may contain: how a gradient passes from a node's outputs to its inputs. A
// rule returns one function per input, which is called only if that input's gradient is wanted. Operations that round
// have no rule. Their users define the gradient of the whole map (Graph.defineGradient).

import type { Attribute, Dim, Graph, Node, Value } from "./graph.ts";
import {
  add,
  concat,
  div,
  matmulTransposed,
  mul,
  neg,
  reduceMean,
  reduceSum,
  reshape,
  rotary,
  scalar,
  scaledMatmul,
  sigmoid,
  split,
  sqrt,
  sub,
  tanh,
  transpose,
  transposedMatmul,
} from "./ops.ts";

/** `dy`: one gradient per output of the node. */
export type Rule = (g: Graph, node: Node, dy: readonly Value[]) => readonly (() => Value)[];

/** The node's inputs, for operations without optional inputs. */
const inputsOf = (node: Node) => node.inputs as readonly Value[];

export const rules: Readonly<Record<string, Rule>> = {
  Add: (g, node, [dy]) => {
    const [a, b] = inputsOf(node);
    return [() => summedTo(g, dy!, a!.shape), () => summedTo(g, dy!, b!.shape)];
  },

  Mul: (g, node, [dy]) => {
    const [a, b] = inputsOf(node);
    return [() => summedTo(g, mul(g, dy!, b!), a!.shape), () => summedTo(g, mul(g, dy!, a!), b!.shape)];
  },

  MatMul: (g, node, [dy]) => {
    const [a, b] = sameBatch(node);
    return [() => matmulTransposed(g, dy!, b), () => transposedMatmul(g, a, dy!)];
  },

  /** y = scale * a · bᵀ. Only gradients make the other forms. */
  FusedMatMul: (g, node, [dy]) => {
    const [a, b] = sameBatch(node);
    if (node.attributes.transB !== 1) throw new Error("only the form a · bᵀ of FusedMatMul has a gradient");
    const scale = floatOf(node.attributes.alpha);
    return [() => scaledMatmul(g, dy!, b, scale), () => transposedMatmul(g, dy!, a, scale)];
  },

  Identity: (_g, _node, [dy]) => [() => dy!],
  Reshape: (g, node, [dy]) => [() => reshapedLike(g, dy!, inputsOf(node)[0]!)],

  Transpose: (g, node, [dy]) => {
    const perm = node.attributes.perm as readonly number[];
    return [
      () =>
        transpose(
          g,
          dy!,
          perm.map((_, axis) => perm.indexOf(axis)),
        ),
    ];
  },

  Concat: (g, node, [dy]) => {
    const axis = node.attributes.axis as number;
    const sizes = inputsOf(node).map(({ shape }) => shape[axis] as number);
    let parts: Value[] | null = null;
    return sizes.map((_, i) => () => {
      parts ??= split(g, dy!, axis, sizes);
      return parts[i]!;
    });
  },

  Split: (g, node, dy) => [() => concat(g, dy, node.attributes.axis as number)],

  Tanh: (g, node, [dy]) => {
    const y = node.outputs[0]!;
    return [() => mul(g, dy!, sub(g, scalar(g, 1), mul(g, y, y)))];
  },

  /** y = x * s with s = sigmoid(x); dy/dx = s * (1 + x - y). */
  QuickGelu: (g, node, [dy]) => {
    const x = inputsOf(node)[0]!;
    if (floatOf(node.attributes.alpha) !== 1) throw new Error("QuickGelu has a gradient only with alpha 1");
    const slope = () => mul(g, sigmoid(g, x), add(g, sub(g, x, node.outputs[0]!), scalar(g, 1)));
    return [() => mul(g, dy!, slope())];
  },

  /** y = x * (1 + t) / 2 with t = tanh(u(x)). */
  Gelu: (g, node, [dy]) => {
    const x = inputsOf(node)[0]!;
    return [
      () => {
        const { t, du } = geluTanhParts(g, x);
        const direct = add(g, t, scalar(g, 1));
        const through = mul(g, mul(g, x, sub(g, scalar(g, 1), mul(g, t, t))), du);
        return mul(g, dy!, mul(g, add(g, direct, through), scalar(g, 0.5)));
      },
    ];
  },

  /** y = n * w with n = x / rms; dx = (dn - n * mean(dn * n)) / rms. */
  SimplifiedLayerNormalization: (g, node, [dy]) => {
    const [x, w] = inputsOf(node);
    return [
      () => {
        const meanSquare = reduceMean(g, mul(g, x!, x!), -1, true);
        const rms = sqrt(g, add(g, meanSquare, scalar(g, floatOf(node.attributes.epsilon))));
        const n = div(g, x!, rms);
        const dn = mul(g, dy!, w!);
        return div(g, sub(g, dn, mul(g, n, reduceMean(g, mul(g, dn, n), -1, true))), rms);
      },
    ];
  },

  /** y = n * w + b with n = (x - mean) / s; dx = (dn - mean(dn) - n * mean(dn * n)) / s. */
  LayerNormalization: (g, node, [dy]) => {
    const [x, w] = inputsOf(node);
    return [
      () => {
        const mean = (value: Value) => reduceMean(g, value, -1, true);
        const centred = sub(g, x!, mean(x!));
        const variance = mean(mul(g, centred, centred));
        const s = sqrt(g, add(g, variance, scalar(g, floatOf(node.attributes.epsilon))));
        const n = div(g, centred, s);
        const dn = mul(g, dy!, w!);
        return div(g, sub(g, sub(g, dn, mean(dn)), mul(g, n, mean(mul(g, dn, n)))), s);
      },
    ];
  },

  /** A rotation: the gradient rotates back. */
  RotaryEmbedding: (g, node, [dy]) => {
    const [, rows, cos, sin] = inputsOf(node);
    return [() => rotary(g, dy!, rows!, cos!, neg(g, sin!))];
  },
};

/** The parts of geluTanh's slope: t = tanh(u), u = c * (x + 0.044715 x³), and du/dx. */
function geluTanhParts(g: Graph, x: Value): { t: Value; du: Value } {
  const c = Math.sqrt(2 / Math.PI);
  const square = mul(g, x, x);
  const inner = add(g, mul(g, square, scalar(g, c * 0.044715)), scalar(g, c));
  const du = add(g, mul(g, square, scalar(g, 3 * c * 0.044715)), scalar(g, c));
  return { t: tanh(g, mul(g, x, inner)), du };
}

/** Sums a gradient over the dimensions along which a value of this shape was repeated. */
function summedTo(g: Graph, dy: Value, shape: readonly Dim[]): Value {
  let result = dy;
  while (result.shape.length > shape.length) result = reduceSum(g, result, 0);
  for (const [axis, size] of shape.entries()) {
    if (size === 1 && result.shape[axis] !== 1) result = reduceSum(g, result, axis, true);
  }
  return result;
}

/** A constant if at most one size is unknown; otherwise the shape is read at run time. */
function reshapedLike(g: Graph, dy: Value, x: Value): Value {
  if (x.shape.filter((dim) => typeof dim === "string").length <= 1) return reshape(g, dy, x.shape);
  const [shape] = g.add("Shape", [x], [{ shape: [x.shape.length], dtype: "int64" }]);
  return g.add("Reshape", [dy, shape!], [{ shape: x.shape }], { allowzero: 0 })[0]!;
}

/** The operands of a product. Their leading dimensions must be equal, so that no sum over repeated ones is needed. */
function sameBatch(node: Node): readonly [Value, Value] {
  const [a, b] = inputsOf(node);
  const [first, second] = [a!.shape.slice(0, -2).join(), b!.shape.slice(0, -2).join()];
  if (first !== second) throw new Error(`no gradient for a product with leading dimensions [${first}] and [${second}]`);
  return [a!, b!];
}

function floatOf(attribute: Attribute | undefined): number {
  return (attribute as { float: number }).float;
}
