// Formats of numbers, as OpenAPI defines them.

/** OpenAPI formats that set bounds. The others fit everything generated: at most 18 digits, 15 before a point. */
const WIDTHS = new Map<string, readonly [least: number, greatest: number]>([
  ...[8, 16, 32].map((bits) => [`int${bits}`, [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1]] as const),
  ...[8, 16, 32].map((bits) => [`uint${bits}`, [0, 2 ** bits - 1]] as const),
  ["uint", [0, Number.POSITIVE_INFINITY]],
  ["uint64", [0, Number.POSITIVE_INFINITY]],
]);

/** The bounds that a number's format sets. */
export function formatBounds(format: string): readonly [least: number, greatest: number] {
  return WIDTHS.get(format) ?? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
}
