import { inflateSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { drawChart } from "./chart.ts";
import { encodePng } from "./png.ts";

describe("charts", () => {
  const image = drawChart([{ name: "reward", values: [0, 1] }], { x: "step", y: "mean" });
  const pixel = (x: number, y: number) => [
    ...image.pixels.subarray((y * image.width + x) * 3, (y * image.width + x) * 3 + 3),
  ];

  it("draws the curve where its values are", () => {
    // from the lower left corner of the plot to its upper right one, blue
    expect(pixel(56, 316)).toEqual([31, 111, 235]);
    expect(pixel(696, 24)).toEqual([31, 111, 235]);
    expect(pixel(376, 170)).toEqual([31, 111, 235]);
    expect(pixel(100, 60)).toEqual([255, 255, 255]);
  });

  it("scales the curve to the top of the axis", () => {
    const scaled = drawChart([{ name: "loss", values: [0, 4] }], { x: "step", y: "loss", top: 4, stride: 50 });
    const at = (x: number, y: number) => [...scaled.pixels.subarray((y * 720 + x) * 3, (y * 720 + x) * 3 + 3)];
    expect(at(56, 316)).toEqual([31, 111, 235]);
    expect(at(376, 170)).toEqual([31, 111, 235]);
    expect(at(696, 24)).toEqual([31, 111, 235]);
  });

  it("makes a PNG that says what was drawn", () => {
    const png = encodePng(image);
    const view = new DataView(png.buffer, png.byteOffset);
    expect(Buffer.from(png.subarray(0, 8)).toString("hex")).toBe("89504e470d0a1a0a");
    expect([view.getUint32(16), view.getUint32(20)]).toEqual([720, 360]);
    const size = view.getUint32(33);
    expect(Buffer.from(png.subarray(37, 41)).toString()).toBe("IDAT");
    const rows = inflateSync(png.subarray(41, 41 + size));
    expect(rows.length).toBe(360 * (1 + 3 * 720));
    expect([...rows.subarray(316 * 2161 + 1 + 56 * 3, 316 * 2161 + 1 + 57 * 3)]).toEqual([31, 111, 235]);
  });
});
