// A few numbers as a small line.
import { sparklinePoints } from "./sparkline-points.ts";

export function Sparkline({ values, label }: { values: readonly number[]; label: string }) {
  if (values.length < 2) return <span class="muted">—</span>;
  return (
    <svg class="sparkline" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label={label}>
      <title>{label}</title>
      <polyline points={sparklinePoints(values)} />
    </svg>
  );
}
