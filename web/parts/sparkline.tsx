// A few numbers as a small line.
export function Sparkline({ values, label }: { values: readonly number[]; label: string }) {
  if (values.length < 2) return <span class="muted">—</span>;
  const low = Math.min(...values);
  const range = Math.max(...values) - low || 1;
  const points = values.map((value, i) => `${(i / (values.length - 1)) * 100},${22 - ((value - low) / range) * 20}`);
  return (
    <svg class="sparkline" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label={label}>
      <title>{label}</title>
      <polyline points={points.join(" ")} />
    </svg>
  );
}
