// The curves of a policy, over its steps or over gradient steps.
import { Chart } from "../parts/chart.tsx";
import { type Columns, chartsOf } from "./curve-charts.ts";
import type { CurveSettings } from "./curve-settings.ts";
import { smoothed } from "./health.ts";

const COLOURS = ["--accent", "--second"];
const X_NAMES = { step: "step", gradient_step: "gradient step" };

export function Curves({ columns, settings }: { columns: Columns; settings: CurveSettings }) {
  const { x, smoothing, isLog, pattern } = settings;
  const xs = (columns[x] ?? []).map(Number);
  const charts = isPattern(pattern) ? chartsOf(columns, pattern) : [];
  if (!isPattern(pattern)) {
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
    <div class="charts">
      {charts.map(({ title, keys, meaning }) => (
        <Chart
          key={title}
          title={title}
          note={meaning}
          xs={xs}
          xName={X_NAMES[x]}
          isLog={isLog}
          height={150}
          series={keys.map((key, i) => ({
            label: keys.length === 1 ? "" : key,
            values: smoothed(columns[key]!, smoothing),
            colour: COLOURS[i % COLOURS.length]!,
          }))}
        />
      ))}
    </div>
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
