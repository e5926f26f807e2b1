// Tables and curves in a terminal, and charts as SVG.

// Tables with aligned columns. The first row is the heading.

export function printTable(rows: readonly (readonly string[])[]): void {
  for (const line of tableLines(rows)) console.log(line);
}

export function tableLines(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) => {
    const cells = row.map((cell, column) => cell.padEnd(widths[column]!));
    return cells.join("  ").trimEnd();
  });
}

// Curves in a terminal, drawn with block characters.

const BLOCKS = "▁▂▃▄▅▆▇█";

/** The last `width` values on one line, scaled between their minimum and maximum. */
export function sparkline(values: readonly number[], width: number): string {
  const shown = values.slice(-width);
  const low = Math.min(...shown);
  const span = Math.max(...shown) - low;
  return shown
    .map((value) => BLOCKS[span === 0 ? 0 : Math.round(((value - low) / span) * (BLOCKS.length - 1))])
    .join("");
}

/** A bar of `width` characters, filled up to `share` (0..1). */
export function bar(share: number, width: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, share)) * width * 8);
  const full = Math.floor(eighths / 8);
  const part = eighths % 8;
  const drawn = "█".repeat(full) + (part === 0 ? "" : BLOCKS[part - 1]);
  return drawn.padEnd(width, "·");
}

// A line chart as an SVG: curves between 0 and a top value over steps, with grid, labels and a legend. The background is
// transparent and the greys are readable on light and dark pages.

export interface ChartLine {
  name: string;
  /** One value per step, between 0 and the top of the axis. */
  values: readonly number[];
}

export interface ChartAxes {
  x: string;
  y: string;
  /** Value at the top of the y axis. Default 1. */
  top?: number;
  /** Steps between two values on the x axis. Default 1. */
  stride?: number;
}

const [WIDTH, HEIGHT] = [720, 360];
const PLOT = { left: 48, right: WIDTH - 16, top: 28, bottom: HEIGHT - 48 };
const COLOURS = ["#2f81f7", "#db6d28", "#3fb950"];

export function drawChart(lines: readonly ChartLine[], { x, y, top = 1, stride = 1 }: ChartAxes): string {
  const steps = Math.max(2, ...lines.map(({ values }) => values.length));
  const xAt = (step: number) => round(PLOT.left + ((PLOT.right - PLOT.left) * step) / (steps - 1));
  const yAt = (value: number) => round(PLOT.bottom - (PLOT.bottom - PLOT.top) * Math.min(1, Math.max(0, value / top)));

  const parts: string[] = [];
  for (const share of [0, 0.2, 0.4, 0.6, 0.8, 1]) {
    const at = yAt(share * top);
    parts.push(`<path class="grid" d="M${PLOT.left} ${at}H${PLOT.right}"/>`);
    parts.push(`<text x="${PLOT.left - 8}" y="${at + 4}" text-anchor="end">${(share * top).toFixed(1)}</text>`);
  }
  const every = Math.max(1, Math.ceil(steps / 12));
  for (let step = 0; step < steps; step += every) {
    parts.push(`<text x="${xAt(step)}" y="${PLOT.bottom + 18}" text-anchor="middle">${step * stride}</text>`);
  }
  parts.push(`<text x="${(PLOT.left + PLOT.right) / 2}" y="${HEIGHT - 8}" text-anchor="middle">${xmlText(x)}</text>`);
  parts.push(`<text x="${PLOT.left}" y="14">${xmlText(y)}</text>`);

  // The legend is at the lower right, or at the upper right if a curve ends low.
  const low = lines.some(({ values }) => (values.at(-1) ?? top) < 0.2 * top);
  for (const [i, { name, values }] of lines.entries()) {
    const colour = COLOURS[i % COLOURS.length]!;
    const points = values.map((value, step) => `${xAt(step)},${yAt(value)}`).join(" ");
    parts.push(`<polyline class="curve" stroke="${colour}" points="${points}"/>`);
    const at = low ? PLOT.top + 18 * (i + 1) : PLOT.bottom - 18 * (lines.length - i) + 6;
    parts.push(`<path class="curve" stroke="${colour}" d="M${PLOT.right - 180} ${at - 4}h20"/>`);
    parts.push(`<text x="${PLOT.right - 152}" y="${at}">${xmlText(name)}</text>`);
  }
  const style =
    "text{font:12px system-ui,sans-serif;fill:#7d8590}.grid{stroke:#7d8590;stroke-opacity:.25}" +
    ".curve{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}";
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img">
<title>${xmlText(`${y} by ${x}`)}</title>
<style>${style}</style>
${parts.join("\n")}
</svg>
`;
}

function round(pixels: number): number {
  return Math.round(pixels * 10) / 10;
}

function xmlText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
