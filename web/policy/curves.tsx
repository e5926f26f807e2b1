// Curves of policies or jobs, several in one chart. What was smoothed stays visible, pale.
import { useEffect, useMemo, useState } from "preact/hooks";
import { Chart, type Series } from "../parts/chart.tsx";
import { type Columns, chartsOf, smoothed, together } from "./curve-charts.ts";
import type { CurveSettings } from "./curve-settings.ts";

/** One source has its metrics in different colours; of several, each has its own. */
export const SOURCE_COLOURS = ["--accent", "--second", "--cold", "--curve-4", "--curve-5", "--curve-6"] as const;
const X_NAMES = { step: "step", gradient_step: "gradient step" };

export interface NamedColumns {
  name: string;
  columns: Columns;
}

export interface CurvesProps {
  sources: readonly NamedColumns[];
  settings: CurveSettings;
}

export function Curves({ sources, settings }: CurvesProps) {
  const { x, smoothing, isLog, pattern, keys } = settings;
  const charts = useMemo(() => {
    if (!isPattern(pattern)) return null;
    const rows = chartsOf(
      sources.map(({ columns }) => columns),
      pattern,
      keys,
    );
    const { xs, rows: rowsOf } = together(sources.map(({ columns }) => (columns[x] ?? []).map(Number)));
    return rows.map((row) => ({ ...row, xs, series: seriesOf(row.keys, sources, rowsOf, smoothing) }));
  }, [sources, x, smoothing, pattern, keys]);
  // one chart per task: making all of them at once would hold up everything else
  const [ready, setReady] = useState(1);
  const isMaking = charts !== null && ready < charts.length;
  useEffect(() => {
    if (!isMaking) return;
    const timer = setTimeout(() => setReady(ready + 1));
    return () => clearTimeout(timer);
  }, [ready, isMaking]);
  if (charts === null) {
    return (
      <p class="problem" role="alert">
        “{pattern}” is no regular expression.
      </p>
    );
  }
  if (charts.length === 0) {
    return <p class="muted">{pattern === "" ? "Nothing was trained yet." : `No metric matches “${pattern}”.`}</p>;
  }
  return (
    <div class="charts" aria-busy={isMaking}>
      {charts.slice(0, ready).map(({ title, meaning, xs, series }) => (
        <Chart
          key={title}
          title={title}
          note={meaning}
          xs={xs}
          xName={X_NAMES[x]}
          isLog={isLog}
          height={150}
          series={series}
        />
      ))}
    </div>
  );
}

function seriesOf(
  keys: readonly string[],
  sources: readonly NamedColumns[],
  rowsOf: readonly (readonly number[])[],
  smoothing: number,
): Series[] {
  return sources.flatMap(({ name, columns }, s) =>
    keys.flatMap((key, k) => {
      const column = columns[key];
      if (column === undefined) return [];
      const spread = (values: readonly (number | null)[]) =>
        rowsOf[s]!.map((row) => (row < 0 ? undefined : (values[row] ?? null)));
      const names = [sources.length > 1 ? name : "", keys.length > 1 ? key : ""].filter((part) => part !== "");
      return {
        label: names.join(" "),
        values: spread(smoothed(column, smoothing)),
        raw: smoothing > 0 ? spread(column) : undefined,
        colour: SOURCE_COLOURS[(sources.length > 1 ? s : k) % SOURCE_COLOURS.length]!,
        isDashed: sources.length > 1 && k > 0,
      };
    }),
  );
}

function isPattern(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}
