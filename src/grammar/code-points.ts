// Sets of Unicode code points as sorted, disjoint, non-adjacent ranges, with the set algebra the grammar needs.
// No set contains surrogates (U+D800..U+DFFF), so every set describes valid UTF-8 text.

export type CodePointRange = readonly [low: number, high: number];
export type CodePointSet = readonly CodePointRange[];

const maxCodePoint = 0x10ffff;

/** Every code point that UTF-8 can encode. */
export const ANY_CODE_POINT: CodePointSet = [
  [0, 0xd7ff],
  [0xe000, maxCodePoint],
];

export const NO_CODE_POINT: CodePointSet = [];

/** Characters that a JSON string must escape. */
export const ESCAPED_IN_JSON: CodePointSet = [
  [0, 0x1f],
  [0x22, 0x22],
  [0x5c, 0x5c],
];

/** Sorts and merges the ranges and drops surrogates. */
export function codePoints(ranges: Iterable<CodePointRange>): CodePointSet {
  return intersectSets(merged(ranges), ANY_CODE_POINT);
}

export function codePointsOf(text: string): CodePointSet {
  return codePoints(Array.from(text, (char) => [char.codePointAt(0)!, char.codePointAt(0)!] as const));
}

export function unionSets(...sets: readonly CodePointSet[]): CodePointSet {
  return merged(sets.flat());
}

export function intersectSets(a: CodePointSet, b: CodePointSet): CodePointSet {
  const out: CodePointRange[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    const low = Math.max(a[i]![0], b[j]![0]);
    const high = Math.min(a[i]![1], b[j]![1]);
    if (low <= high) out.push([low, high]);
    if (a[i]![1] < b[j]![1]) i++;
    else j++;
  }
  return out;
}

export function includesPoint(set: CodePointSet, point: number): boolean {
  let from = 0;
  let to = set.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (set[middle]![1] < point) from = middle + 1;
    else to = middle;
  }
  return from < set.length && set[from]![0] <= point;
}

export function complementSet(set: CodePointSet): CodePointSet {
  const out: CodePointRange[] = [];
  let next = 0;
  for (const [low, high] of set) {
    if (low > next) out.push([next, low - 1]);
    next = high + 1;
  }
  if (next <= maxCodePoint) out.push([next, maxCodePoint]);
  return intersectSets(out, ANY_CODE_POINT);
}

export function subtractSets(a: CodePointSet, b: CodePointSet): CodePointSet {
  return intersectSets(a, complementSet(b));
}

/** Splits the whole code space so that every given set is a union of the pieces. */
export function partition(sets: readonly CodePointSet[]): CodePointSet {
  const cuts = new Set<number>([0, 0xd800, 0xe000, maxCodePoint + 1]);
  for (const set of sets) {
    for (const [low, high] of set) {
      cuts.add(low);
      cuts.add(high + 1);
    }
  }
  const sorted = [...cuts].sort((x, y) => x - y);
  const pieces: CodePointRange[] = [];
  for (let i = 0; i + 1 < sorted.length; i++) {
    if (sorted[i] !== 0xd800) pieces.push([sorted[i]!, sorted[i + 1]! - 1]);
  }
  return pieces;
}

function merged(ranges: Iterable<CodePointRange>): CodePointSet {
  const sorted = [...ranges].sort((x, y) => x[0] - y[0]);
  const out: [number, number][] = [];
  for (const [low, high] of sorted) {
    const last = out.at(-1);
    if (last && low <= last[1] + 1) last[1] = Math.max(last[1], high);
    else out.push([low, high]);
  }
  return out;
}

// Ranges of code points as sequences of byte ranges, which an automaton over bytes can accept.

export type ByteRange = readonly [low: number, high: number];

const LENGTH_ENDS = [0x7f, 0x7ff, 0xffff, 0x10ffff];

/** Sequences of 1 to 4 byte ranges whose products are exactly the UTF-8 encodings of low..high (no surrogates inside). */
export function utf8Ranges(low: number, high: number): ByteRange[][] {
  const out: ByteRange[][] = [];
  let start = low;
  for (const end of LENGTH_ENDS) {
    if (start > high) break;
    if (start <= end) {
      split(start, Math.min(high, end), out);
      start = end + 1;
    }
  }
  return out;
}

/** low..high encode to the same number of bytes. Splits until every trailing byte spans a full or a single range. */
function split(low: number, high: number, out: ByteRange[][]): void {
  const length = low <= 0x7f ? 1 : low <= 0x7ff ? 2 : low <= 0xffff ? 3 : 4;
  for (let tail = length - 1; tail >= 1; tail--) {
    const mask = 2 ** (6 * tail) - 1;
    if (Math.floor(low / (mask + 1)) === Math.floor(high / (mask + 1))) continue;
    if ((low & mask) !== 0) {
      split(low, low | mask, out);
      split((low | mask) + 1, high, out);
      return;
    }
    if ((high & mask) !== mask) {
      split(low, (high & ~mask) - 1, out);
      split(high & ~mask, high, out);
      return;
    }
  }
  const from = encode(low, length);
  const to = encode(high, length);
  out.push(from.map((byte, index) => [byte, to[index]!] as const));
}

function encode(point: number, length: number): number[] {
  if (length === 1) return [point];
  const bytes: number[] = [];
  let rest = point;
  for (let i = 1; i < length; i++) {
    bytes.unshift(0x80 | (rest & 0x3f));
    rest >>= 6;
  }
  bytes.unshift([0, 0, 0xc0, 0xe0, 0xf0][length]! | rest);
  return bytes;
}
