// Encodes weights for llama.cpp: float32, float16, bfloat16, its two oldest block formats, and two with large blocks. In the
// old ones a block is 32 consecutive weights of a row with one float16 scale, and rounding follows llama.cpp's code.

import { narrowToBfloat16, narrowToFloat16 } from "../../src/model/checkpoint/half-floats.ts";
import { encodeQ4K, encodeQ6K, LARGE_BLOCK, Q4_K_BYTES, Q6_K_BYTES } from "./ggml-large-blocks.ts";

export type GgmlType = "f32" | "f16" | "bf16" | "q8_0" | "q4_0" | "q4_K" | "q6_K";

/** Type numbers in GGUF files. */
export const GGML_TYPE: Readonly<Record<GgmlType, number>> = {
  ...{ f32: 0, f16: 1, bf16: 30, q4_0: 2, q8_0: 8, q4_K: 12, q6_K: 14 },
};

export const BLOCK = 32;

/** A row is a multiple of this many weights. */
export function blockOf(type: GgmlType): number {
  if (type === "q4_K" || type === "q6_K") return LARGE_BLOCK;
  return type === "q8_0" || type === "q4_0" ? BLOCK : 1;
}

export function encodedBytes(type: GgmlType, elements: number): number {
  switch (type) {
    case "f32":
      return elements * 4;
    case "f16":
    case "bf16":
      return elements * 2;
    case "q8_0":
      return (elements / BLOCK) * (2 + BLOCK);
    case "q4_0":
      return (elements / BLOCK) * (2 + BLOCK / 2);
    case "q4_K":
      return (elements / LARGE_BLOCK) * Q4_K_BYTES;
    case "q6_K":
      return (elements / LARGE_BLOCK) * Q6_K_BYTES;
    default:
      return type satisfies never;
  }
}

/** The length of a row is a multiple of the block. */
export function encode(type: GgmlType, weights: Float32Array): Uint8Array {
  switch (type) {
    case "f32":
      return new Uint8Array(weights.buffer, weights.byteOffset, weights.byteLength);
    case "f16":
      return new Uint8Array(narrowToFloat16(weights).buffer);
    case "bf16":
      return new Uint8Array(narrowToBfloat16(weights).buffer);
    case "q8_0":
      return encodeQ8(weights);
    case "q4_0":
      return encodeQ4(weights);
    case "q4_K":
      return encodeQ4K(weights);
    case "q6_K":
      return encodeQ6K(weights);
    default:
      return type satisfies never;
  }
}

/** The scale, then 32 signed bytes: weight = byte * scale. */
function encodeQ8(weights: Float32Array): Uint8Array {
  const blocks = weights.length / BLOCK;
  const scales = new Float32Array(blocks);
  const bytes = new Uint8Array(encodedBytes("q8_0", weights.length));
  for (let block = 0; block < blocks; block++) {
    const from = block * BLOCK;
    let largest = 0;
    for (let i = from; i < from + BLOCK; i++) largest = Math.max(largest, Math.abs(weights[i]!));
    const scale = Math.fround(largest / 127);
    scales[block] = scale;
    const inverse = scale === 0 ? 0 : Math.fround(1 / scale);
    const at = block * (2 + BLOCK) + 2;
    for (let i = 0; i < BLOCK; i++) bytes[at + i] = roundAway(Math.fround(weights[from + i]! * inverse));
  }
  writeScales(bytes, scales, 2 + BLOCK);
  return bytes;
}

/** The scale, then 16 bytes. Byte i holds weight i in its low half and weight i + 16 in its high half, as (q - 8) * scale. */
function encodeQ4(weights: Float32Array): Uint8Array {
  const blocks = weights.length / BLOCK;
  const half = BLOCK / 2;
  const scales = new Float32Array(blocks);
  const bytes = new Uint8Array(encodedBytes("q4_0", weights.length));
  for (let block = 0; block < blocks; block++) {
    const from = block * BLOCK;
    let extreme = 0;
    for (let i = from; i < from + BLOCK; i++) if (Math.abs(weights[i]!) > Math.abs(extreme)) extreme = weights[i]!;
    const scale = Math.fround(extreme / -8);
    scales[block] = scale;
    const inverse = scale === 0 ? 0 : Math.fround(1 / scale);
    const level = (value: number) => Math.min(15, Math.floor(Math.fround(value * inverse) + 8.5));
    const at = block * (2 + half) + 2;
    for (let i = 0; i < half; i++) bytes[at + i] = level(weights[from + i]!) | (level(weights[from + i + half]!) << 4);
  }
  writeScales(bytes, scales, 2 + half);
  return bytes;
}

function writeScales(bytes: Uint8Array, scales: Float32Array, stride: number): void {
  const view = new DataView(bytes.buffer);
  for (const [block, scale] of narrowToFloat16(scales).entries()) view.setUint16(block * stride, scale, true);
}

/** Rounds halves away from zero, like C's roundf. */
function roundAway(value: number): number {
  return (value < 0 ? value - 0.5 : value + 0.5) | 0;
}
