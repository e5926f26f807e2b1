// The names of parameters in statements that take several values. Statements are prepared once for each text, so few counts are used.

/** `?1, ?2, …`, beginning after the first `skip` parameters. */
export function placeholders(count: number, skip = 0): string {
  return Array.from({ length: count }, (_, i) => `?${skip + i + 1}`).join(", ");
}
