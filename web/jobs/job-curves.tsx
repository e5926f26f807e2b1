// What the gradient steps of a job measured, as curves that grow while it runs.
import { useMemo } from "preact/hooks";
import type { TrainingEvent } from "../../src/client/types.ts";
import { CurveBar } from "../policy/curve-bar.tsx";
import { metricsOf } from "../policy/curve-charts.ts";
import { Curves } from "../policy/curves.tsx";
import { useCurveSettings } from "../policy/use-curve-settings.ts";

/** Beside the axis itself. */
const AXIS = "gradient_step";

/** `events`: of the gradient steps, in order. */
export function JobCurves({ events }: { events: readonly TrainingEvent[] }) {
  const [{ value: settings }, change] = useCurveSettings();
  const sources = useMemo(() => [{ name: "", columns: columnsOf(events) }], [events]);
  if (events.length < 2) return null;
  return (
    <section aria-label="Curves" class="serving">
      <h2 class="sr-only">Curves</h2>
      <CurveBar
        settings={settings}
        metrics={metricsOf(sources.map(({ columns }) => columns))}
        hasSteps={false}
        onChange={change}
      />
      <Curves sources={sources} settings={{ ...settings, x: AXIS }} />
    </section>
  );
}

function columnsOf(events: readonly TrainingEvent[]): Record<string, (number | null)[]> {
  const columns: Record<string, (number | null)[]> = { [AXIS]: events.map((_, i) => i + 1) };
  for (const [row, { data }] of events.entries()) {
    for (const [key, value] of Object.entries(data)) {
      if (key === AXIS || typeof value !== "number") continue;
      columns[key] ??= new Array<null>(events.length).fill(null);
      columns[key][row] = value;
    }
  }
  return columns;
}
