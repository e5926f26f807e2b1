// Rounds the weights of a linear layer W [out, in] into the layouts of the runtime's kernels. Results fill the given
// memory, or new memory.

import { eachPiece, type MatrixRows, PIECE_ROWS } from "./matrix-rows.ts";

/** One signed byte per weight and one scale per output: W[o, i] = values[i, o] * scales[o]. */
export interface Int8Weights {
  /** [in, out] */
  values: Int8Array;
  /** [out] */
  scales: Float32Array;
}

/** Two weights per byte and one scale per 32 inputs: W = (nibble - 8) * scale. */
export interface Int4Weights {
  /** [out, in / 32, 16]; the lower nibble is the earlier input. */
  values: Uint8Array;
  /** [out * in / 32] */
  scales: Float32Array;
}

export const INT4_BLOCK = 32;

/** Largest magnitude of a byte. */
const RANGE = 127;

/**
 * The largest weight of an output becomes RANGE, unless all its weights are whole steps already. So a checkpoint that was
 * rounded to bytes before keeps its steps and loses nothing.
 */
export function quantizeInt8(matrix: MatrixRows, values = new Int8Array(matrix.out * matrix.inputs)): Int8Weights {
  const { out, inputs } = matrix;
  const scales = new Float32Array(out);
  eachPiece(matrix, (weights, first, count) => {
    const stepsPerUnit = new Float64Array(count);
    for (let o = 0; o < count; o++) {
      const row = weights.subarray(o * inputs, (o + 1) * inputs);
      const largest = largestOf(row);
      const scale = stepOf(row, largest) ?? largest / RANGE;
      scales[first + o] = scale;
      stepsPerUnit[o] = scale === 0 ? 0 : 1 / scale;
    }
    eachTile(count, inputs, (oStart, oEnd, iStart, iEnd) => {
      for (let o = oStart; o < oEnd; o++) {
        const factor = stepsPerUnit[o]!;
        let target = iStart * out + first + o;
        for (let i = iStart; i < iEnd; i++, target += out) {
          const steps = weights[o * inputs + i]! * factor;
          // The nearest integer, halves away from zero. Without a branch: a processor cannot predict the sign of a
          // weight.
          values[target] = ((2 * steps) | 0) - (steps | 0);
        }
      }
    });
  });
  return { values, scales };
}

function largestOf(row: Float32Array): number {
  let largest = 0;
  for (let i = 0; i < row.length; i++) {
    const magnitude = Math.abs(row[i]!);
    if (magnitude > largest) largest = magnitude;
  }
  return largest;
}

/** How far float16 storage may have moved the ratio of a weight to the largest one. (bfloat16 blurs whole steps.) */
const STORED_ERROR = 1 / 1024;

/**
 * The step of which all weights of a row are multiples, the largest at most RANGE times; null if there is none. Tries the
 * fractions of the largest weight and fits the one found to all weights. Other rows are recognised after a few weights.
 */
function stepOf(row: Float32Array, largest: number): number | null {
  if (largest === 0) return null;
  for (let steps = RANGE; steps > 0; steps--) {
    const fitted = fittedStep(row, largest / steps);
    // Never so small that the largest weight exceeds the range.
    if (fitted !== null) return Math.max(fitted, largest / (RANGE + 0.25));
  }
  return null;
}

/** The least-squares step near `step`, or null if a weight is not a multiple of it. */
function fittedStep(row: Float32Array, step: number): number | null {
  let product = 0;
  let square = 0;
  for (let i = 0; i < row.length; i++) {
    const multiple = row[i]! / step;
    const whole = Math.round(multiple);
    if (Math.abs(multiple - whole) > Math.abs(whole) * STORED_ERROR) return null;
    product += row[i]! * whole;
    square += whole * whole;
  }
  return product / square;
}

/** [out, in] -> [in, out]. */
export function transposed(matrix: MatrixRows, result = new Float32Array(matrix.out * matrix.inputs)): Float32Array {
  const { out, inputs } = matrix;
  eachPiece(matrix, (weights, first, count) => {
    eachTile(count, inputs, (oStart, oEnd, iStart, iEnd) => {
      for (let o = oStart; o < oEnd; o++) {
        for (let i = iStart; i < iEnd; i++) result[i * out + first + o] = weights[o * inputs + i]!;
      }
    });
  });
  return result;
}

/** Visits a matrix in tiles whose rows and columns both stay in the processor's cache. */
function eachTile(
  out: number,
  inputs: number,
  visit: (oStart: number, oEnd: number, iStart: number, iEnd: number) => void,
): void {
  const size = PIECE_ROWS;
  for (let o = 0; o < out; o += size) {
    for (let i = 0; i < inputs; i += size) visit(o, Math.min(o + size, out), i, Math.min(i + size, inputs));
  }
}

/** `inputs` is a multiple of 32. The largest weight of a block becomes -8, so that all 16 levels are used. */
export function quantizeInt4(
  matrix: MatrixRows,
  values = new Uint8Array((matrix.out * matrix.inputs) / 2),
): Int4Weights {
  const { out, inputs } = matrix;
  if (inputs % INT4_BLOCK !== 0) throw new Error(`int4 needs a multiple of ${INT4_BLOCK} inputs, found ${inputs}`);
  const scales = new Float32Array((out * inputs) / INT4_BLOCK);
  eachPiece(matrix, (weights, first) => {
    const start = first * inputs;
    for (let at = 0; at < weights.length; at += INT4_BLOCK) {
      let extreme = 0;
      for (let i = 0; i < INT4_BLOCK; i++) {
        const weight = weights[at + i]!;
        if (Math.abs(weight) > Math.abs(extreme)) extreme = weight;
      }
      const scale = extreme / -8;
      scales[(start + at) / INT4_BLOCK] = scale;
      const inverse = scale === 0 ? 0 : 1 / scale;
      for (let i = 0; i < INT4_BLOCK; i += 2) {
        const low = nibble(weights[at + i]! * inverse);
        const high = nibble(weights[at + i + 1]! * inverse);
        values[(start + at + i) / 2] = low | (high << 4);
      }
    }
  });
  return { values, scales };
}

/** value: -8 .. 8 */
function nibble(value: number): number {
  return Math.min(15, (value + 8.5) | 0);
}

/** The values of int8 weights: [out, in]. */
export function widenInt8(
  { values, scales }: Int8Weights,
  out: number,
  inputs: number,
  weights = new Float32Array(out * inputs),
): Float32Array {
  eachTile(out, inputs, (oStart, oEnd, iStart, iEnd) => {
    for (let o = oStart; o < oEnd; o++) {
      for (let i = iStart; i < iEnd; i++) weights[o * inputs + i] = values[i * out + o]! * scales[o]!;
    }
  });
  return weights;
}

/** The values of int4 weights: [out, in]. */
export function widenInt4(
  { values, scales }: Int4Weights,
  weights = new Float32Array(values.length * 2),
): Float32Array {
  for (let i = 0; i < values.length; i++) {
    const scale = scales[Math.floor((2 * i) / INT4_BLOCK)]!;
    weights[2 * i] = ((values[i]! & 15) - 8) * scale;
    weights[2 * i + 1] = ((values[i]! >> 4) - 8) * scale;
  }
  return weights;
}
