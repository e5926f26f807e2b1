// A linear layer as published transformers.js models have it: plain, int8 by ONNX Runtime's dynamic quantization (one scale
// per tensor for weights and activations), or int4 in blocks of 32 (MatMulNBits).

import { type Graph, MICROSOFT, type Value } from "../../src/graph/graph.ts";
import { matmul, mul, scalar } from "../../src/graph/ops.ts";
import { matrixOf } from "../../src/model/linear/matrix-rows.ts";
import { INT4_BLOCK, quantizeInt4 } from "../../src/model/linear/quantize.ts";
import type { Precision } from "../contenders/contender.ts";

export type ExportPrecision = Exclude<Precision, "f16">;

export interface ExportedWeights {
  name: string;
  /** [out, in] */
  values: Float32Array;
  out: number;
  inputs: number;
}

/** x: [..., in] -> [..., out]. */
export function exportedLinear(g: Graph, x: Value, w: ExportedWeights, precision: ExportPrecision): Value {
  const shape = x.shape.with(-1, w.out);
  if (precision === "int4" && w.inputs % INT4_BLOCK === 0) {
    const { values, scales } = quantizeInt4(matrixOf(w.values, w.out, w.inputs));
    const blocks = w.inputs / INT4_BLOCK;
    const inputs = [
      x,
      g.initializer(w.name, [w.out, blocks, INT4_BLOCK / 2], values),
      g.initializer(`${w.name}.scale`, [w.out * blocks], scales),
    ];
    const attributes = { K: w.inputs, N: w.out, bits: 4, block_size: INT4_BLOCK };
    return g.add("MatMulNBits", inputs, [{ shape }], attributes, MICROSOFT)[0]!;
  }
  if (precision === "int8") {
    let largest = 0;
    for (let i = 0; i < w.values.length; i++) largest = Math.max(largest, Math.abs(w.values[i]!));
    const scale = largest / 127 || 1;
    const rounded = new Int8Array(w.values.length);
    for (let i = 0; i < rounded.length; i++) rounded[i] = Math.round(w.values[i]! / scale);
    const rows = g.add(
      "DynamicQuantizeLinear",
      [x],
      [{ shape: x.shape, dtype: "uint8" }, { shape: [] }, { shape: [], dtype: "uint8" }],
    );
    const inputs = [rows[0]!, g.initializer(w.name, [w.inputs, w.out], transposed(rounded, w)), rows[2]!];
    const product = g.add("MatMulInteger", inputs, [{ shape, dtype: "int32" }])[0]!;
    return mul(g, cast(g, product, "float32"), mul(g, rows[1]!, scalar(g, scale)));
  }
  return matmul(g, x, g.initializer(w.name, [w.inputs, w.out], transposed(w.values, w)));
}

/** ONNX's type numbers. */
const ELEMENT_TYPES = { float32: 1, int32: 6 } as const;

export function cast(g: Graph, x: Value, dtype: keyof typeof ELEMENT_TYPES): Value {
  return g.add("Cast", [x], [{ shape: x.shape, dtype }], { to: ELEMENT_TYPES[dtype] })[0]!;
}

/** [out, in] -> [in, out] */
function transposed<T extends Float32Array | Int8Array>(values: T, { out, inputs }: ExportedWeights): T {
  const result = values.slice() as T;
  for (let o = 0; o < out; o++) for (let i = 0; i < inputs; i++) result[i * out + o] = values[o * inputs + i]!;
  return result;
}
