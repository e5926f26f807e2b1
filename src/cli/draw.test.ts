import { expect, it } from "vitest";
import { drawChart } from "./draw.ts";

const points = (svg: string) => /points="([^"]*)"/.exec(svg)?.[1];

it("draws a curve from the lower left to the upper right corner of the plot", () => {
  expect(points(drawChart([{ name: "reward", values: [0, 0.5, 1] }], { x: "step", y: "mean" }))).toBe(
    "48,312 376,170 704,28",
  );
});

it("scales curves and labels to the top of the axis and to the stride", () => {
  const svg = drawChart([{ name: "loss", values: [0, 4] }], { x: "step", y: "loss", top: 4, stride: 50 });
  expect(points(svg)).toBe("48,312 704,28");
  expect(svg).toContain(">4.0</text>");
  expect(svg).toContain(">50</text>");
});

it("keeps values outside the axis at its ends", () => {
  expect(points(drawChart([{ name: "reward", values: [-1, 2] }], { x: "step", y: "mean" }))).toBe("48,312 704,28");
});

it("escapes names", () => {
  const svg = drawChart([{ name: "a < b & c", values: [0, 1] }], { x: "step", y: "mean" });
  expect(svg).toContain(">a &lt; b &amp; c</text>");
});
