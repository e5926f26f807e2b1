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
