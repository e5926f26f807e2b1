// A line chart as an image: one or more curves between 0 and a top value over steps, with axes, grid and names. Text is drawn
// with a small built-in font, so that nothing else is needed.

import { drawText, TEXT_HEIGHT, textWidth } from "./bitmap-font.ts";
import type { Image } from "./png.ts";

export interface ChartLine {
  name: string;
  /** 0..top, one per step. */
  values: readonly number[];
}

type Colour = readonly [number, number, number];

const [WIDTH, HEIGHT] = [720, 360];
const PLOT = { left: 56, right: WIDTH - 24, top: 24, bottom: HEIGHT - 44 };
const GRID: Colour = [226, 229, 233];
const INK: Colour = [70, 78, 90];
const COLOURS: readonly Colour[] = [
  [31, 111, 235],
  [217, 100, 41],
  [46, 145, 84],
];

export interface ChartAxes {
  x: string;
  y: string;
  /** The value at the upper end of the y axis; 1 when absent. */
  top?: number;
  /** What one step counts on the x axis; 1 when absent. */
  stride?: number;
}

export function drawChart(lines: readonly ChartLine[], axes: ChartAxes): Image {
  const { top: highest = 1, stride = 1 } = axes;
  const image: Image = { width: WIDTH, height: HEIGHT, pixels: new Uint8Array(WIDTH * HEIGHT * 3).fill(255) };
  const steps = Math.max(2, ...lines.map(({ values }) => values.length));
  const x = (step: number) => PLOT.left + ((PLOT.right - PLOT.left) * step) / (steps - 1);
  const y = (value: number) => PLOT.bottom - (PLOT.bottom - PLOT.top) * Math.min(1, Math.max(0, value / highest));

  for (let tenth = 0; tenth <= 10; tenth += 2) {
    const value = (tenth / 10) * highest;
    const at = Math.round(y(value));
    for (let px = PLOT.left; px <= PLOT.right; px++) paint(image, px, at, GRID, 1);
    const label = value.toFixed(1);
    drawText(label, PLOT.left - 8 - textWidth(label), at - TEXT_HEIGHT / 2, (px, py) => paint(image, px, py, INK, 1));
  }
  const every = Math.max(1, Math.ceil(steps / 12));
  for (let step = 0; step < steps; step += every) {
    const label = String(step * stride);
    drawText(label, x(step) - textWidth(label) / 2, PLOT.bottom + 8, (px, py) => paint(image, px, py, INK, 1));
  }
  drawText(axes.x, (PLOT.left + PLOT.right - textWidth(axes.x)) / 2, HEIGHT - 18, (px, py) =>
    paint(image, px, py, INK, 1),
  );
  drawText(axes.y, PLOT.left, 6, (px, py) => paint(image, px, py, INK, 1));

  // The names stand in the lower right corner, or in the upper one where a curve ends low.
  const low = lines.some(({ values }) => (values.at(-1) ?? highest) < 0.2 * highest);
  for (const [i, { name, values }] of lines.entries()) {
    const colour = COLOURS[i % COLOURS.length]!;
    for (let step = 0; step + 1 < values.length; step++) {
      stroke(image, x(step), y(values[step]!), x(step + 1), y(values[step + 1]!), colour);
    }
    const top = low ? PLOT.top + 8 + 18 * i : PLOT.bottom - 18 * (lines.length - i);
    stroke(image, PLOT.right - 180, top + 3, PLOT.right - 160, top + 3, colour);
    drawText(name, PLOT.right - 152, top, (px, py) => paint(image, px, py, INK, 1));
  }
  return image;
}

/** A line two pixels wide with soft edges. */
function stroke(image: Image, x0: number, y0: number, x1: number, y1: number, colour: Colour): void {
  const length = Math.hypot(x1 - x0, y1 - y0) || 1;
  const [left, right] = [Math.floor(Math.min(x0, x1)) - 2, Math.ceil(Math.max(x0, x1)) + 2];
  const [top, bottom] = [Math.floor(Math.min(y0, y1)) - 2, Math.ceil(Math.max(y0, y1)) + 2];
  for (let y = top; y <= bottom; y++) {
    for (let x = left; x <= right; x++) {
      const along = Math.min(1, Math.max(0, ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / length ** 2));
      const distance = Math.hypot(x - x0 - along * (x1 - x0), y - y0 - along * (y1 - y0));
      paint(image, x, y, colour, Math.min(1, Math.max(0, 1.6 - distance)));
    }
  }
}

function paint({ width, height, pixels }: Image, x: number, y: number, colour: Colour, strength: number): void {
  const [px, py] = [Math.round(x), Math.round(y)];
  if (strength <= 0 || px < 0 || py < 0 || px >= width || py >= height) return;
  for (let c = 0; c < 3; c++) {
    const at = (py * width + px) * 3 + c;
    pixels[at] = Math.round(pixels[at]! + (colour[c]! - pixels[at]!) * strength);
  }
}
