// Encodes weights for llama.cpp: float32, float16, and its two oldest block formats. A block is 32 consecutive weights of a
// row with one float16 scale. Rounding follows llama.cpp's reference code.

import { narrowToFloat16 } from "../../src/model/checkpoint/half-floats.ts";

export type GgmlType = "f32" | "f16" | "q8_0" | "q4_0";

/** Type numbers in GGUF files. */
export const GGML_TYPE: Readonly<Record<GgmlType, number>> = { f32: 0, f16: 1, q4_0: 2, q8_0: 8 };

export const BLOCK = 32;

export function encodedBytes(type: GgmlType, elements: number): number {
  switch (type) {
    case "f32":
      return elements * 4;
    case "f16":
      return elements * 2;
    case "q8_0":
      return (elements / BLOCK) * (2 + BLOCK);
    case "q4_0":
      return (elements / BLOCK) * (2 + BLOCK / 2);
    default:
      return type satisfies never;
  }
}

/** In block formats, the length of a row is a multiple of 32. */
export function encode(type: GgmlType, weights: Float32Array): Uint8Array {
  switch (type) {
    case "f32":
      return new Uint8Array(weights.buffer, weights.byteOffset, weights.byteLength);
    case "f16":
      return new Uint8Array(narrowToFloat16(weights).buffer);
    case "q8_0":
      return encodeQ8(weights);
    case "q4_0":
      return encodeQ4(weights);
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
    const values = weights.subarray(block * BLOCK, (block + 1) * BLOCK);
    let largest = 0;
    for (const value of values) largest = Math.max(largest, Math.abs(value));
    const scale = Math.fround(largest / 127);
    scales[block] = scale;
    const inverse = scale === 0 ? 0 : Math.fround(1 / scale);
    const at = block * (2 + BLOCK) + 2;
    for (let i = 0; i < BLOCK; i++) bytes[at + i] = roundAway(Math.fround(values[i]! * inverse));
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
    const values = weights.subarray(block * BLOCK, (block + 1) * BLOCK);
    let extreme = 0;
    for (const value of values) if (Math.abs(value) > Math.abs(extreme)) extreme = value;
    const scale = Math.fround(extreme / -8);
    scales[block] = scale;
    const inverse = scale === 0 ? 0 : Math.fround(1 / scale);
    const level = (value: number) => Math.min(15, Math.floor(Math.fround(value * inverse) + 8.5));
    const at = block * (2 + half) + 2;
    for (let i = 0; i < half; i++) bytes[at + i] = level(values[i]!) | (level(values[i + half]!) << 4);
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
  return Math.sign(value) * Math.round(Math.abs(value));
}
