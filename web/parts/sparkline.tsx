// A few numbers as a small line.

export function Sparkline({ values, label }: { values: readonly number[]; label: string }) {
  if (values.length < 2) return <span class="muted">—</span>;
  return (
    <svg class="sparkline" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label={label}>
      <title>{label}</title>
      <polyline points={sparklinePoints(values)} />
    </svg>
  );
}

/** As an SVG polyline has them. The lowest value is near the bottom, the highest near the top; a flat line is in the middle. */
export function sparklinePoints(values: readonly number[]): string {
  const low = Math.min(...values);
  const range = Math.max(...values) - low;
  const place = (value: number) => (range === 0 ? 0.5 : (value - low) / range);
  return values
    .map((value, i) => `${round((i / Math.max(1, values.length - 1)) * 100)},${round(22 - place(value) * 20)}`)
    .join(" ");
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
