// Numbers of two bytes (IEEE 754's binary16), slowly, to compare those of the native module with.

const LARGEST = 65504;

/** The nearest such number, the even one of two; beyond the largest, that. */
export function nearestHalf(x: number): number {
  if (Number.isNaN(x) || x === 0) return x;
  if (Math.abs(x) >= LARGEST) return Math.sign(x) * LARGEST;
  const step = 2 ** (Math.max(-14, Math.floor(Math.log2(Math.abs(x)))) - 10);
  const steps = Math.abs(x) / step;
  const low = Math.floor(steps);
  const up = steps - low > 0.5 || (steps - low === 0.5 && low % 2 === 1);
  return Math.sign(x) * (low + (up ? 1 : 0)) * step;
}

export function halfOfBits(bits: number): number {
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  const size = exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25);
  return (bits >= 0x8000 ? -1 : 1) * (exponent < 31 ? size : fraction === 0 ? Infinity : Number.NaN);
}
