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
