// Looks for numbers that are none, by their bits: every exponent bit is set in infinities and NaN.

const EXPONENT = { F32: 0x7f800000, F16: 0x7c00, BF16: 0x7f80 } as const;

/** Number of the first value that is infinite or NaN; -1 if there is none. */
export function firstNonFinite(bits: Uint32Array | Uint16Array, dtype: keyof typeof EXPONENT): number {
  const exponent = EXPONENT[dtype];
  for (let i = 0; i < bits.length; i++) if ((bits[i]! & exponent) === exponent) return i;
  return -1;
}
