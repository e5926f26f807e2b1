// A linear layer of the model as graph nodes, in the weight type that the operator chose.
//  float32  the runtime's packed matrix product.
//  int8     weights: one byte each, one scale per output. Activations: two digits of one byte with one scale per row, so
//           a row's result does not depend on other rows. The products are exact integers. In operations of the runtime,
//           the two digits of a row go through one product as two rows, so each weight is read once; a second product
//           weighs and adds them.
//  int4     weights: 32 inputs share a scale. Activations are rounded per 32 inputs of the same row.
// The native module does all of an int8 or int4 linear layer in one operation (native/linear/linear.c).

import { FLYWHEEL, type Graph, MICROSOFT, type Value } from "../../graph/graph.ts";
import { add, concat, div, matmul, reshape, scalar, sub, unitRms } from "../../graph/ops.ts";
import type { DigitSteps, Digits } from "./int8-probe.ts";
import { eachPiece, type MatrixRows } from "./matrix-rows.ts";
import { INT4_BLOCK, quantizeInt4, quantizeInt8, transposed, widenInt4, widenInt8 } from "./quantize.ts";

export type WeightType = "float32" | "int8" | "int4";

export interface LinearWeights {
  name: string;
  weight: MatrixRows;
  /** [out] */
  bias: Float32Array | null;
  /** int8: how activations are rounded. */
  digits: Digits;
}

/** x: [n, in] -> [n, out], or [n, 1, in] -> [n, 1, out]. */
export function linear(g: Graph, x: Value, weights: LinearWeights, type: WeightType): Value {
  const { name, bias, digits } = weights;
  const addend = bias === null ? null : g.initializer(`${name}.bias`, [bias.length], bias);
  if (digits === "native" && type !== "float32") return nativeMap(g, x, weights, type, addend);
  const product = productOf(g, x, weights, type);
  return addend === null ? product : add(g, product, addend);
}

/** Rounding, product and bias as one operation of the native module. */
function nativeMap(g: Graph, x: Value, weights: LinearWeights, type: WeightType, bias: Value | null): Value {
  const isInt4 = usableType(type, weights.weight.inputs) === "int4";
  const rounded = isInt4 ? int4Weights(g, weights) : int8Weights(g, weights);
  const operands = [x, ...rounded, bias];
  const output = { shape: x.shape.with(-1, weights.weight.out) };
  return g.add(isInt4 ? "Int4Linear" : "Int8Linear", operands, [output], {}, FLYWHEEL)[0]!;
}

/** Values [in, out] and scales [out]. */
function int8Weights(g: Graph, { name, weight }: LinearWeights): [Value, Value] {
  const { out, inputs } = weight;
  const { values, scales } = quantizeInt8(weight, g.memory.take(Int8Array, out * inputs));
  return [g.initializer(name, [inputs, out], values), g.initializer(`${name}.scale`, [out], scales)];
}

/** Values [out, in / 32, 16] and scales [out * in / 32]. */
function int4Weights(g: Graph, { name, weight }: LinearWeights): [Value, Value] {
  const { out, inputs } = weight;
  const { values, scales } = quantizeInt4(weight, g.memory.take(Uint8Array, (out * inputs) / 2));
  const blocks = inputs / INT4_BLOCK;
  return [
    g.initializer(name, [out, blocks, INT4_BLOCK / 2], values),
    g.initializer(`${name}.scale`, [out * blocks], scales),
  ];
}

/** int4 needs a multiple of 32 inputs. Other linear layers stay int8. */
function usableType(type: WeightType, inputs: number): WeightType {
  return type === "int4" && inputs % INT4_BLOCK !== 0 ? "int8" : type;
}

/** The rounded weights that `linear` multiplies with, [out, in], in given or new memory. Gradients pass through these. */
export function effectiveWeights(
  weight: MatrixRows,
  type: WeightType,
  effective = new Float32Array(weight.out * weight.inputs),
): Float32Array {
  const { out, inputs } = weight;
  switch (usableType(type, inputs)) {
    case "float32":
      eachPiece(weight, (rows, first) => effective.set(rows, first * inputs));
      return effective;
    case "int8":
      return widenInt8(quantizeInt8(weight), out, inputs, effective);
    case "int4":
      return widenInt4(quantizeInt4(weight), effective);
  }
}

function productOf(g: Graph, x: Value, weights: LinearWeights, type: WeightType): Value {
  const { name, weight, digits } = weights;
  const { out, inputs } = weight;
  const shape = x.shape.with(-1, out);
  switch (usableType(type, inputs)) {
    case "float32": {
      const columns = transposed(weight, g.memory.take(Float32Array, out * inputs));
      return matmul(g, x, g.initializer(name, [inputs, out], columns));
    }
    case "int4": {
      const operands = [x, ...int4Weights(g, weights)];
      const attributes = { K: inputs, N: out, bits: 4, block_size: INT4_BLOCK, accuracy_level: 4 };
      return g.add("MatMulNBits", operands, [{ shape }], attributes, MICROSOFT)[0]!;
    }
    case "int8": {
      const [values, scales] = int8Weights(g, weights);
      const apart = x.shape.length === 3 ? x : reshape(g, x, [x.shape[0]!, 1, inputs]);
      const steps = digits as DigitSteps;
      const rows = inDigits(g, apart, steps);
      const operands = [rows.values, values, scalar(g, 1), scales, zeroPoint(g, steps)];
      const output = { shape: rows.values.shape.with(2, out) };
      const [product] = g.add("MatMulIntegerToFloat", operands, [output], {}, MICROSOFT);
      const weighed = matmul(g, rows.scales, product!);
      return apart === x ? weighed : reshape(g, weighed, shape);
    }
  }
}

/**
 * x: [n, 1, in] -> `values`: two digits of each number as bytes, [n, 2, in]; `scales`: the value of one unit of each digit,
 * [n, 1, 2].
 *
 * A digit goes from -steps to steps. The first one scales by a bound of the row's largest magnitude: the root mean square
 * times the root of the size, because one operation finds it and divides by it. Rounding leaves at most half a unit, which
 * the second digit divides into 2 * steps. A row of zeros has scale 0, so its bytes do not matter.
 */
function inDigits(g: Graph, x: Value, steps: DigitSteps): { values: Value; scales: Value } {
  const unit = Math.sqrt(x.shape[2] as number) / steps;
  const fineUnit = unit / (2 * steps);
  const zero = zeroPoint(g, steps);
  const rounded = (value: Value, size: number) =>
    g.add("QuantizeLinear", [value, scalar(g, size), zero], [{ shape: x.shape, dtype: "uint8" }])[0]!;
  const { units, inverse } = unitRms(g, x);
  const coarse = rounded(units, unit);
  const [widened] = g.add("DequantizeLinear", [coarse, scalar(g, unit), zero], [{ shape: x.shape }]);
  const fine = rounded(sub(g, units, widened!), fineUnit);
  return {
    values: concat(g, [coarse, fine], 1),
    scales: div(g, g.constant(new Float32Array([unit, fineUnit]), [2]), inverse),
  };
}

/** The byte that means 0. */
function zeroPoint(g: Graph, steps: DigitSteps): Value {
  return g.constant(new Uint8Array([steps + 1]), []);
}
