// Converts float16 and bfloat16 to float32 and back, in bulk. Assumes a little-endian host, as nearly all that run Node
// are. Widening is exact and keeps NaN payloads. Narrowing rounds to nearest, ties to even, like PyTorch.

/** The float32 bit pattern of each of the 65,536 float16 values. Built on first use. */
let float16Table: Uint32Array | null = null;
/** The same table, as numbers. */
let float16Values: Float32Array | null = null;

/** Widens `source.length` float16 values into `target` from `offset` on. */
export function widenFloat16(source: Uint16Array, target: Float32Array, offset: number): void {
  float16Table ??= buildFloat16Table();
  const table = float16Table;
  const bits = new Uint32Array(target.buffer, target.byteOffset + offset * 4, source.length);
  for (let i = 0; i < source.length; i++) bits[i] = table[source[i]!]!;
}

/** The value of one float16. */
export function valueOfFloat16(bits: number): number {
  float16Table ??= buildFloat16Table();
  float16Values ??= new Float32Array(float16Table.buffer);
  return float16Values[bits]!;
}

/** Widens `source.length` bfloat16 values into `target` from `offset` on. */
export function widenBfloat16(source: Uint16Array, target: Float32Array, offset: number): void {
  const bits = new Uint32Array(target.buffer, target.byteOffset + offset * 4, source.length);
  for (let i = 0; i < source.length; i++) bits[i] = source[i]! << 16;
}

export function narrowToBfloat16(source: Float32Array): Uint16Array {
  const bits = new Uint32Array(source.buffer, source.byteOffset, source.length);
  const result = new Uint16Array(source.length);
  for (let i = 0; i < bits.length; i++) {
    const value = bits[i]!;
    const notANumber = (value & 0x7fffffff) > 0x7f800000;
    // NaN: keep the sign and the upper payload, stay a NaN. Otherwise add half of the last kept bit, ties to even.
    result[i] = notANumber ? (value >>> 16) | 0x40 : (value + 0x7fff + ((value >>> 16) & 1)) >>> 16;
  }
  return result;
}

export function narrowToFloat16(source: Float32Array): Uint16Array {
  const bits = new Uint32Array(source.buffer, source.byteOffset, source.length);
  const result = new Uint16Array(source.length);
  for (let i = 0; i < bits.length; i++) result[i] = float16Bits(bits[i]!);
  return result;
}

function float16Bits(bits: number): number {
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00 | ((magnitude >>> 13) & 0x1ff);
  // 65,520 and above round to infinity.
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  if (magnitude >= 0x38800000) {
    // Normal: rebias the exponent by 112, round 13 bits away.
    const rebiased = magnitude - 0x38000000;
    return sign | ((rebiased + 0xfff + ((rebiased >>> 13) & 1)) >>> 13);
  }
  // Subnormal or zero: in units of 2^-24, the smallest step. 2^-25 and below round to zero.
  const exponent = magnitude >>> 23;
  if (exponent < 102) return sign;
  const mantissa = (magnitude & 0x7fffff) | 0x800000;
  const shift = 126 - exponent;
  const kept = mantissa >>> shift;
  const rest = mantissa & ((1 << shift) - 1);
  const half = 1 << (shift - 1);
  return sign | (kept + (rest > half || (rest === half && (kept & 1) === 1) ? 1 : 0));
}

function buildFloat16Table(): Uint32Array {
  const table = new Uint32Array(65_536);
  const scratch = new Float32Array(1);
  const scratchBits = new Uint32Array(scratch.buffer);
  for (let half = 0; half < 65_536; half++) {
    const exponent = (half >>> 10) & 0x1f;
    const mantissa = half & 0x3ff;
    const sign = ((half & 0x8000) << 16) >>> 0;
    if (exponent === 0x1f) table[half] = sign | 0x7f800000 | (mantissa << 13);
    else if (exponent === 0) {
      scratch[0] = mantissa * 2 ** -24;
      table[half] = sign | scratchBits[0]!;
    } else table[half] = sign | ((exponent + 112) << 23) | (mantissa << 13);
  }
  return table;
}

// Finds infinities and NaN by their bits: all their exponent bits are set. Adding the lowest exponent bit then carries
// into the sign's place, so a word is tested without a branch, and two 16-bit numbers at once.

const FORMS = {
  F32: { exponent: 0x7f800000, lowest: 0x00800000, signs: 0x80000000 },
  F16: { exponent: 0x7c007c00, lowest: 0x04000400, signs: 0x80008000 },
  BF16: { exponent: 0x7f807f80, lowest: 0x00800080, signs: 0x80008000 },
} as const;

/** Index of the first value that is infinite or NaN, or -1. `values`: as stored, starting at an even index. */
export function firstNonFinite(values: Float32Array | Uint16Array, dtype: keyof typeof FORMS): number {
  const { exponent, lowest, signs } = FORMS[dtype];
  const perWord = 4 / values.BYTES_PER_ELEMENT;
  const words = new Int32Array(values.buffer, values.byteOffset, Math.floor(values.length / perWord));
  let found = 0;
  for (let i = 0; i < words.length; i++) found |= (words[i]! & exponent) + lowest;
  const rest = values.length - words.length * perWord;
  if ((found & signs) === 0 && rest === 0) return -1;
  const bits = dtype === "F32" ? words : (values as Uint16Array);
  const mask = dtype === "F32" ? exponent : exponent & 0xffff;
  return bits.findIndex((value) => (value & mask) === mask);
}
