import { crc32, deflateSync, inflateSync } from "node:zlib";
import { expect, it } from "vitest";
import { fewColours } from "../../bench/web/png.ts";

function chunk(type: string, ...data: number[]): Buffer {
  const body = Buffer.from([...Buffer.from(type), ...data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

/** 8-bit RGB. A row is its filter, then its bytes. */
function picture(width: number, rows: readonly (readonly number[])[]): Buffer {
  const size = [0, 0, width >> 8, width & 255, 0, 0, 0, rows.length];
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", ...size, 8, 2, 0, 0, 0),
    chunk("IDAT", ...deflateSync(Buffer.from(rows.flat()))),
    chunk("IEND"),
  ]);
}

/** Palette and indices of a picture with a palette. */
function read(png: Buffer): { palette: number[]; rows: number[] } {
  const data = (type: string) => {
    const at = png.indexOf(type, 0, "latin1");
    return png.subarray(at + 4, at + 4 + png.readUInt32BE(at - 4));
  };
  expect(data("IHDR").subarray(8)).toEqual(Buffer.from([8, 3, 0, 0, 0]));
  return { palette: [...data("PLTE")], rows: [...inflateSync(data("IDAT"))] };
}

it("keeps every colour of a picture that has few, whatever filters its rows have", () => {
  // black and red; then red twice, by the bytes at the left, above, the mean of both, and Paeth's guess
  const filtered = [1, 2, 3, 4].map((filter) =>
    filter === 1 ? [1, 255, 0, 0, 0, 0, 0] : filter === 3 ? [3, 128, 0, 0, 0, 0, 0] : [filter, 0, 0, 0, 0, 0, 0],
  );
  const { palette, rows } = read(fewColours(picture(2, [[0, 0, 0, 0, 255, 0, 0], ...filtered])));
  expect(palette).toEqual([255, 0, 0, 0, 0, 0]);
  expect(rows).toEqual([[0, 1, 0], ...filtered.map(() => [0, 0, 0])].flat());
});

it("takes the most alike of the 256 most frequent colours for the others", () => {
  const pixels = Array.from({ length: 256 }, (_, i) => [i, 0, 0, i, 0, 0]).flat();
  const { palette, rows } = read(fewColours(picture(513, [[0, ...pixels, 9, 1, 0]])));
  expect(palette).toHaveLength(3 * 256);
  expect(palette[3 * rows.at(-1)!]).toBe(9);
});
