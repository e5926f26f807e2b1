// A linear map of the model as graph nodes, in the weight type the operator chose.
//  float32  the runtime's packed matrix product.
//  int8     weights: a byte each, one scale per output. Activations: one or two bytes each with one scale per row, so that
//           a row's result does not depend on the other rows. The products are exact integers; the two digits of a row
//           go through one product as rows of their own, so a weight is read once, and a second product weighs and adds them.
//  int4     weights: blocks of 32 inputs share a scale; the kernel rounds activations per block of 32 of the same row.

import { type Graph, MICROSOFT, type Value } from "../graph/graph.ts";
import { abs, add, concat, div, matmul, mul, reduceMax, reshape, scalar, sub, unitRms } from "../graph/ops.ts";
import type { Int8Range } from "./int8-probe.ts";
import { eachPiece, type MatrixRows } from "./matrix-rows.ts";
import { INT4_BLOCK, quantizeInt4, quantizeInt8, transposed, widenInt4, widenInt8 } from "./quantize.ts";

export type WeightType = "float32" | "int8" | "int4";

export interface LinearWeights {
  name: string;
  weight: MatrixRows;
  /** [out] */
  bias: Float32Array | null;
  /** int8: what an activation is rounded to. */
  activationBytes: 1 | 2;
  int8Range: Int8Range;
}

/** x: [n, in] -> [n, out], or with rows apart: [n, 1, in] -> [n, 1, out]. */
export function linear(g: Graph, x: Value, weights: LinearWeights, type: WeightType): Value {
  const product = productOf(g, x, weights, type);
  if (weights.bias === null) return product;
  return add(g, product, g.initializer(`${weights.name}.bias`, [weights.weight.out], weights.bias));
}

/** int4 needs blocks of 32 inputs; a map whose size does not allow that stays int8. */
export function usableType(type: WeightType, inputs: number): WeightType {
  return type === "int4" && inputs % INT4_BLOCK !== 0 ? "int8" : type;
}

/** The weights that `linear` really multiplies with, [out, in], in given memory or new: the gradient passes through these. */
export function effectiveWeights(
  { weight, int8Range }: LinearWeights,
  type: WeightType,
  effective = new Float32Array(weight.out * weight.inputs),
): Float32Array {
  const { out, inputs } = weight;
  switch (usableType(type, inputs)) {
    case "float32":
      eachPiece(weight, (rows, first) => effective.set(rows, first * inputs));
      return effective;
    case "int8":
      return widenInt8(quantizeInt8(weight, int8Range), out, inputs, effective);
    case "int4":
      return widenInt4(quantizeInt4(weight), effective);
  }
}

function productOf(g: Graph, x: Value, weights: LinearWeights, type: WeightType): Value {
  const { name, weight, activationBytes, int8Range } = weights;
  const { out, inputs } = weight;
  const shape = x.shape.with(-1, out);
  switch (usableType(type, inputs)) {
    case "float32": {
      const columns = transposed(weight, g.memory.take(Float32Array, out * inputs));
      return matmul(g, x, g.initializer(name, [inputs, out], columns));
    }
    case "int4": {
      const { values, scales } = quantizeInt4(weight, g.memory.take(Uint8Array, (out * inputs) / 2));
      const blocks = inputs / INT4_BLOCK;
      const operands = [
        x,
        g.initializer(name, [out, blocks, INT4_BLOCK / 2], values),
        g.initializer(`${name}.scale`, [out * blocks], scales),
      ];
      const attributes = { K: inputs, N: out, bits: 4, block_size: INT4_BLOCK, accuracy_level: 4 };
      return g.add("MatMulNBits", operands, [{ shape }], attributes, MICROSOFT)[0]!;
    }
    case "int8": {
      const { values, scales } = quantizeInt8(weight, int8Range, g.memory.take(Int8Array, out * inputs));
      const apart = x.shape.length === 3 ? x : reshape(g, x, [x.shape[0]!, 1, inputs]);
      const rows = activationBytes === 1 ? oneByte(g, apart) : twoBytes(g, apart);
      const operands = [
        rows.values,
        g.initializer(name, [inputs, out], values),
        scalar(g, 1),
        g.initializer(`${name}.scale`, [out], scales),
        zeroPoint(g),
      ];
      const output = { shape: rows.values.shape.with(2, out) };
      const [product] = g.add("MatMulIntegerToFloat", operands, [output], {}, MICROSOFT);
      const weighed = matmul(g, rows.scales, product!);
      return apart === x ? weighed : reshape(g, weighed, shape);
    }
  }
}

/** Rows as bytes [n, digits, in], and what one unit of each digit stands for: [n, 1, digits]. */
interface RoundedRows {
  values: Value;
  scales: Value;
}

/** Bytes stand for -127 .. 127 units. */
const STEPS = 127;
/** Rounding to the first digit leaves at most half a unit, which the second divides into this many. */
const FINE_STEPS = 2 * STEPS;

/**
 * x: [n, 1, in], each row in units that make its largest magnitude STEPS. A row of zeros has scale 0; whatever its bytes are,
 * they are multiplied by that in the end.
 */
function oneByte(g: Graph, x: Value): RoundedRows {
  const largest = reduceMax(g, abs(g, x), 2, true);
  const unit = 1 / STEPS;
  return { values: quantized(g, div(g, x, largest), unit), scales: mul(g, largest, scalar(g, unit)) };
}

/**
 * The same in two digits. With these there is room to take the units from a bound of the largest magnitude, the root mean
 * square times the root of the size: one operation finds it and divides by it.
 */
function twoBytes(g: Graph, x: Value): RoundedRows {
  const unit = Math.sqrt(x.shape[2] as number) / STEPS;
  const fineUnit = unit / FINE_STEPS;
  const { units, inverse } = unitRms(g, x);
  const coarse = quantized(g, units, unit);
  const rest = sub(g, units, widened(g, coarse, unit));
  return {
    values: concat(g, [coarse, quantized(g, rest, fineUnit)], 1),
    scales: div(g, g.constant(new Float32Array([unit, fineUnit]), [2]), inverse),
  };
}

function quantized(g: Graph, x: Value, unit: number): Value {
  return g.add("QuantizeLinear", [x, scalar(g, unit), zeroPoint(g)], [{ shape: x.shape, dtype: "uint8" }])[0]!;
}

function widened(g: Graph, x: Value, unit: number): Value {
  return g.add("DequantizeLinear", [x, scalar(g, unit), zeroPoint(g)], [{ shape: x.shape }])[0]!;
}

/** Bytes 0..255 of activations stand for -128..127. */
function zeroPoint(g: Graph): Value {
  return g.constant(new Uint8Array([128]), []);
}
