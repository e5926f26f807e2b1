// A linear map of the model as graph nodes, in the weight type the operator chose.
//  float32  the runtime's packed matrix product.
//  int8     weights: a byte each, one scale per output. Activations: one or two bytes each with one scale per row, so that
//           a row's result does not depend on the other rows; coarse and fine bytes go through one product as separate
//           rows, so a weight is read once. The products are exact integers.
//  int4     weights: blocks of 32 inputs share a scale; the kernel rounds activations per block of 32 of the same row.

import { type Graph, MICROSOFT, type Value } from "../graph/graph.ts";
import { abs, add, concat, matmul, mul, reduceMax, reshape, scalar, sub } from "../graph/ops.ts";
import type { Int8Range } from "./int8-probe.ts";
import { INT4_BLOCK, quantizeInt4, quantizeInt8, transposed, widenInt4, widenInt8 } from "./quantize.ts";

export type WeightType = "float32" | "int8" | "int4";

export interface LinearWeights {
  name: string;
  /** [out, in], row-major. */
  weight: Float32Array;
  bias: Float32Array | null;
  out: number;
  inputs: number;
  /** int8: activations in two bytes, for maps whose inputs have outliers. */
  fine: boolean;
  int8Range: Int8Range;
}

/** The zero point of rounded activations: bytes 0..255 stand for -128..127. */
export const ACTIVATION_ZERO = 128;

/** Name of the graph input that int8 maps need: uint8 [n, 1], filled with ACTIVATION_ZERO. */
export const ZERO_POINTS = "zero_points";

/** x: [n, in] -> [n, out]. `zeroPoints` is the ZERO_POINTS input, present when the type is int8. */
export function linear(g: Graph, x: Value, weights: LinearWeights, type: WeightType, zeroPoints: Value | null): Value {
  const product = productOf(g, x, weights, type, zeroPoints);
  if (weights.bias === null) return product;
  return add(g, product, g.initializer(`${weights.name}.bias`, [weights.out], weights.bias));
}

/** int4 needs blocks of 32 inputs; a map whose size does not allow that stays int8. */
export function usableType(type: WeightType, inputs: number): WeightType {
  return type === "int4" && inputs % INT4_BLOCK !== 0 ? "int8" : type;
}

/** The weights that `linear` really multiplies with, [out, in]: the gradient passes through these. */
export function effectiveWeights({ weight, out, inputs, int8Range }: LinearWeights, type: WeightType): Float32Array {
  switch (usableType(type, inputs)) {
    case "float32":
      return weight;
    case "int8":
      return widenInt8(quantizeInt8(weight, out, inputs, int8Range), out, inputs);
    case "int4":
      return widenInt4(quantizeInt4(weight, out, inputs));
  }
}

function productOf(g: Graph, x: Value, w: LinearWeights, type: WeightType, zeroPoints: Value | null): Value {
  const shape = [x.shape[0]!, w.out];
  switch (usableType(type, w.inputs)) {
    case "float32":
      return matmul(g, x, g.initializer(w.name, [w.inputs, w.out], transposed(w.weight, w.out, w.inputs)));
    case "int4": {
      const { values, scales } = quantizeInt4(w.weight, w.out, w.inputs);
      const blocks = w.inputs / INT4_BLOCK;
      const inputs = [
        x,
        g.initializer(w.name, [w.out, blocks, INT4_BLOCK / 2], values),
        g.initializer(`${w.name}.scale`, [w.out * blocks], scales),
      ];
      const attributes = { K: w.inputs, N: w.out, bits: 4, block_size: INT4_BLOCK, accuracy_level: 4 };
      return g.add("MatMulNBits", inputs, [{ shape }], attributes, MICROSOFT)[0]!;
    }
    case "int8": {
      const { values, scales } = quantizeInt8(w.weight, w.out, w.inputs, w.int8Range);
      const rows = w.fine ? fineRows(g, x, zeroPoints!) : roundRows(g, x, zeroPoints!);
      const inputs = [
        rows.values,
        g.initializer(w.name, [w.inputs, w.out], values),
        scalar(g, 1),
        g.initializer(`${w.name}.scale`, [w.out], scales),
        g.constant(new Uint8Array([ACTIVATION_ZERO]), []),
      ];
      const product = g.add(
        "MatMulIntegerToFloat",
        inputs,
        [{ shape: [rows.values.shape[0]!, w.out] }],
        {},
        MICROSOFT,
      )[0]!;
      if (!w.fine) return mul(g, product, rows.scales);
      const [high, low] = g.add("Split", [product], [{ shape }, { shape }], { axis: 0, num_outputs: 2 });
      return mul(g, add(g, high!, mul(g, low!, scalar(g, 1 / FINE_STEPS))), rows.scales);
    }
  }
}

/** Rows as bytes, and what one unit of a row's bytes stands for: [n, 1]. */
interface RoundedRows {
  values: Value;
  scales: Value;
}

/** Rounding to a byte leaves at most half a unit; the fine byte divides a unit into this many. */
const FINE_STEPS = 254;

/**
 * Each row of x [n, in] with its own scale: the largest magnitude becomes 127. A row of zeros has scale 0; whatever its
 * bytes are, they are multiplied by that in the end.
 */
function roundRows(g: Graph, x: Value, zeroPoints: Value): RoundedRows {
  const scales = mul(g, reduceMax(g, abs(g, x), 1, true), scalar(g, 1 / 127));
  return { values: quantized(g, x, scales, zeroPoints), scales };
}

/** The rows' coarse bytes, then as many rows with what the coarse ones left over, in units FINE_STEPS times smaller. */
function fineRows(g: Graph, x: Value, zeroPoints: Value): RoundedRows {
  const { values, scales } = roundRows(g, x, zeroPoints);
  // The runtime's blocked form of this takes nine times as long as the one with a list of scales, one per row.
  const [list, zeros] = [scales, zeroPoints].map((column) => reshape(g, column, [x.shape[0]!]));
  const [widened] = g.add("DequantizeLinear", [values, list!, zeros!], [{ shape: x.shape }], { axis: 0 });
  const fine = quantized(g, sub(g, x, widened!), mul(g, scales, scalar(g, 1 / FINE_STEPS)), zeroPoints);
  return { values: concat(g, [values, fine], 0), scales };
}

/** A row is one block, so that scales are a column, as its users want them. */
function quantized(g: Graph, x: Value, scales: Value, zeroPoints: Value): Value {
  const attributes = { axis: 1, block_size: x.shape[1] as number };
  return g.add("QuantizeLinear", [x, scales, zeroPoints], [{ shape: x.shape, dtype: "uint8" }], attributes)[0]!;
}
