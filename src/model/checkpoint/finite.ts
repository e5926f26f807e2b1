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
