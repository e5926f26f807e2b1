// The formats in which weights are stored, as blocks of some values in some bytes: plain numbers, which are blocks of one,
// and llama.cpp's rounded formats. Widening gives the float32 that llama.cpp's reference code gives, to the last bit.

import { valueOfFloat16, widenBfloat16, widenFloat16 } from "./half-floats.ts";

export interface BlockFormat {
  /** Values of one block. A row of a matrix is a whole number of blocks. */
  readonly values: number;
  /** Bytes of one block. */
  readonly bytes: number;
  /** Widens whole blocks. `source` starts at an even address. */
  widen(source: Uint8Array, target: Float32Array): void;
}

/** Values that share the scales of a large block, and those that share one of the small scales inside it. */
const LARGE = 256;
const SMALL = 32;

export const BLOCK_FORMATS = {
  F32: {
    values: 1,
    bytes: 4,
    widen: (source, target) => new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(source),
  },
  F16: { values: 1, bytes: 2, widen: (source, target) => widenFloat16(halves(source), target, 0) },
  BF16: { values: 1, bytes: 2, widen: (source, target) => widenBfloat16(halves(source), target, 0) },
  /** scale · 32 signed bytes */
  Q8_0: { values: SMALL, bytes: 34, widen: widenQ8 },
  /** scale · 32 half bytes, minus 8 */
  Q4_0: { values: SMALL, bytes: 18, widen: (source, target) => widenSmall(source, target, { bits: 4, least: false }) },
  /** scale · least value · 32 half bytes */
  Q4_1: { values: SMALL, bytes: 20, widen: (source, target) => widenSmall(source, target, { bits: 4, least: true }) },
  /** scale · 32 fifth bits · 32 half bytes, minus 16 */
  Q5_0: { values: SMALL, bytes: 22, widen: (source, target) => widenSmall(source, target, { bits: 5, least: false }) },
  /** scale · least value · 32 fifth bits · 32 half bytes */
  Q5_1: { values: SMALL, bytes: 24, widen: (source, target) => widenSmall(source, target, { bits: 5, least: true }) },
  /** two scales · eight pairs of 6-bit factors · 256 half bytes */
  Q4_K: { values: LARGE, bytes: 144, widen: (source, target) => widenLarge(source, target, 4) },
  /** two scales · eight pairs of 6-bit factors · 256 fifth bits · 256 half bytes */
  Q5_K: { values: LARGE, bytes: 176, widen: (source, target) => widenLarge(source, target, 5) },
  /** 256 half bytes · 256 upper pairs of bits · 16 signed factors · scale */
  Q6_K: { values: LARGE, bytes: 210, widen: widenQ6 },
} as const satisfies Record<string, BlockFormat>;

export type WeightDtype = keyof typeof BLOCK_FORMATS;

export function isWeightDtype(name: string): name is WeightDtype {
  return Object.hasOwn(BLOCK_FORMATS, name);
}

function halves(source: Uint8Array): Uint16Array {
  return new Uint16Array(source.buffer, source.byteOffset, source.length / 2);
}

function float16At(bytes: Uint8Array, at: number): number {
  return valueOfFloat16(bytes[at]! | (bytes[at + 1]! << 8));
}

function widenQ8(source: Uint8Array, target: Float32Array): void {
  const signed = new Int8Array(source.buffer, source.byteOffset, source.length);
  for (let at = 0, to = 0; at < source.length; at += 34, to += SMALL) {
    const scale = float16At(source, at);
    for (let i = 0; i < SMALL; i++) target[to + i] = signed[at + 2 + i]! * scale;
  }
}

/** The low half bytes are the first 16 values, the high ones the other 16. */
function widenSmall(source: Uint8Array, target: Float32Array, { bits, least }: { bits: 4 | 5; least: boolean }): void {
  const quants = 2 + (least ? 2 : 0) + (bits === 5 ? 4 : 0);
  const stride = quants + SMALL / 2;
  const middle = least ? 0 : 2 ** (bits - 1);
  for (let at = 0, to = 0; at < source.length; at += stride, to += SMALL) {
    const scale = float16At(source, at);
    const base = least ? float16At(source, at + 2) : 0;
    for (let i = 0; i < SMALL / 2; i++) {
      const byte = source[at + quants + i]!;
      const low = bits === 5 ? fifthBit(source, at + quants - 4, i) : 0;
      const high = bits === 5 ? fifthBit(source, at + quants - 4, i + 16) : 0;
      const values = [((byte & 15) + low - middle) * scale, ((byte >> 4) + high - middle) * scale] as const;
      target[to + i] = least ? values[0] + base : values[0];
      target[to + 16 + i] = least ? values[1] + base : values[1];
    }
  }
}

/** 16 if bit `index` from byte `at` on is set. */
function fifthBit(source: Uint8Array, at: number, index: number): 0 | 16 {
  return (source[at + (index >> 3)]! >> (index & 7)) & 1 ? 16 : 0;
}

/** A value is scale * factor * quant - leastScale * leastFactor. Factors change every 32 values. */
function widenLarge(source: Uint8Array, target: Float32Array, bits: 4 | 5): void {
  const stride = bits === 4 ? 144 : 176;
  const quants = bits === 4 ? 16 : 48;
  for (let at = 0, to = 0; at < source.length; at += stride, to += LARGE) {
    const scale = float16At(source, at);
    const leastScale = float16At(source, at + 2);
    for (let group = 0; group < 8; group++) {
      const { factor, leastFactor } = factorsAt(source, at + 4, group);
      const [step, least] = [scale * factor, leastScale * leastFactor];
      // Two groups share 32 bytes: the low halves, then the high halves.
      const from = at + quants + (group >> 1) * SMALL;
      const shift = (group & 1) * 4;
      for (let i = 0; i < SMALL; i++) {
        const upper = bits === 5 && (source[at + 16 + i]! >> group) & 1 ? 16 : 0;
        target[to + group * SMALL + i] = step * (((source[from + i]! >> shift) & 15) + upper) - least;
      }
    }
  }
}

/** Eight pairs of 6-bit numbers in 12 bytes: the first four plain, the upper bits of the others in those bytes' upper bits. */
function factorsAt(source: Uint8Array, at: number, group: number): { factor: number; leastFactor: number } {
  const byte = (index: number) => source[at + index]!;
  if (group < 4) return { factor: byte(group) & 63, leastFactor: byte(group + 4) & 63 };
  return {
    factor: (byte(group + 4) & 15) | ((byte(group - 4) >> 6) << 4),
    leastFactor: (byte(group + 4) >> 4) | ((byte(group) >> 6) << 4),
  };
}

/** Each half of a block, 128 values, has 64 bytes of lower halves, 32 of upper pairs of bits, and 8 factors. */
function widenQ6(source: Uint8Array, target: Float32Array): void {
  const signed = new Int8Array(source.buffer, source.byteOffset, source.length);
  for (let at = 0, to = 0; at < source.length; at += 210, to += LARGE) {
    const scale = float16At(source, at + 208);
    for (let half = 0; half < 2; half++) {
      const [lower, upper, factors] = [at + half * 64, at + 128 + half * 32, at + 192 + half * 8];
      for (let i = 0; i < 128; i++) {
        const [quarter, inQuarter] = [i >> 5, i & 31];
        const low = (source[lower + (quarter & 1) * 32 + inQuarter]! >> ((quarter >> 1) * 4)) & 15;
        const high = (source[upper + inQuarter]! >> (quarter * 2)) & 3;
        const step = scale * signed[factors + (i >> 4)]!;
        target[to + half * 128 + i] = step * ((low | (high << 4)) - 32);
      }
    }
  }
}
