// Orders 32-bit floats as integers: a < b exactly when sortKey(a) < sortKey(b). Neighbouring floats have neighbouring
// keys, and -0 has the key of +0. NaN has no key.

const asFloat = new Float32Array(1);
const asInteger = new Int32Array(asFloat.buffer);

/** Signed 32-bit key of a float. */
export function sortKey(value: number): number {
  asFloat[0] = value + 0;
  const bits = asInteger[0]!;
  return bits ^ ((bits >> 31) >>> 1);
}

/** The float with this key. */
export function keyToFloat(key: number): number {
  asInteger[0] = key ^ ((key >> 31) >>> 1);
  return asFloat[0]!;
}
