// Makes pictures of the page small: the 256 most frequent colours, and every other as the nearest of them. A page has few colours
// beside the shades of its letters, so nobody sees the difference, and the file is a third.
import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const MOST_COLOURS = 256;

/** `png`: 8-bit RGB without interlacing, as the browser writes it. */
export function fewColours(png: Buffer): Buffer {
  const chunks = chunksOf(png);
  const header = chunks.find(({ type }) => type === "IHDR")!.data;
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  if (!header.subarray(8).equals(Buffer.from([8, 2, 0, 0, 0]))) throw new Error("the picture is no plain RGB");
  const data = chunks.filter(({ type }) => type === "IDAT").map((chunk) => chunk.data);
  const pixels = unfiltered(inflateSync(Buffer.concat(data)), width * 3, height);
  const counts = new Map<number, number>();
  for (let at = 0; at < pixels.length; at += 3) {
    const colour = pixels.readUIntBE(at, 3);
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const frequent = [...counts].sort(([, a], [, b]) => b - a).map(([colour]) => colour);
  const palette = frequent.slice(0, MOST_COLOURS);
  const places = new Map(frequent.map((colour) => [colour, nearest(colour, palette)]));
  const rows = Buffer.alloc((width + 1) * height); // the first byte of a row, 0, says that it is not filtered
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      rows[y * (width + 1) + 1 + x] = places.get(pixels.readUIntBE((y * width + x) * 3, 3))!;
    }
  }
  const colours = Buffer.from(palette.flatMap((colour) => rgb(colour)));
  const indexed = Buffer.from(header);
  indexed[9] = 3; // a palette
  const written = [chunk("IHDR", indexed), chunk("PLTE", colours), chunk("IDAT", deflateSync(rows, { level: 9 }))];
  return Buffer.concat([SIGNATURE, ...written, chunk("IEND", Buffer.alloc(0))]);
}

function chunksOf(png: Buffer): { type: string; data: Buffer }[] {
  const found = [];
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at);
    found.push({ type: png.toString("latin1", at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) });
    at += 12 + length;
  }
  return found;
}

/** Bytes of the rows, from what each says of the bytes at its left and above: PNG's filters 0 to 4. */
function unfiltered(raw: Buffer, stride: number, height: number): Buffer {
  const pixels = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (stride + 1)]!;
    for (let x = 0; x < stride; x++) {
      const at = y * stride + x;
      const left = x < 3 ? 0 : pixels[at - 3]!;
      const above = y === 0 ? 0 : pixels[at - stride]!;
      const corner = x < 3 || y === 0 ? 0 : pixels[at - stride - 3]!;
      const guesses = [0, left, above, (left + above) >> 1, paeth(left, above, corner)];
      pixels[at] = raw[y * (stride + 1) + 1 + x]! + guesses[filter]!;
    }
  }
  return pixels;
}

function paeth(left: number, above: number, corner: number): number {
  const sum = left + above - corner;
  const far = (value: number) => Math.abs(sum - value);
  if (far(left) <= far(above) && far(left) <= far(corner)) return left;
  return far(above) <= far(corner) ? above : corner;
}

/** The place of the most alike colour. */
function nearest(colour: number, palette: readonly number[]): number {
  const own = rgb(colour);
  let [best, least] = [0, Number.POSITIVE_INFINITY];
  for (const [place, other] of palette.entries()) {
    const distance = rgb(other).reduce((sum, part, i) => sum + (part - own[i]!) ** 2, 0);
    if (distance < least) [best, least] = [place, distance];
  }
  return best;
}

function rgb(colour: number): [number, number, number] {
  return [colour >> 16, (colour >> 8) & 255, colour & 255];
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}
