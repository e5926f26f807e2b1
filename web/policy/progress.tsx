// How a policy does: a reading of its curves, and the curves. What is set is in the address.

import { useSignal } from "@preact/signals";
import type { TrainingJob } from "../../src/client/types.ts";
import { CurveBar } from "./curve-bar.tsx";
import { type CurveSettings, curveQuery, curveSettingsFrom } from "./curve-settings.ts";
import { Curves } from "./curves.tsx";
import { healthOf } from "./health.ts";
import { useCurves } from "./use-curves.ts";

export interface ProgressProps {
  path: string;
  /** Changes when there is a new step. */
  turn: string;
  /** Changes when there is a new gradient step. */
  gradientTurn: string;
  /** The newest first. */
  jobs: readonly TrainingJob[];
}

export function Progress({ path, turn, gradientTurn, jobs }: ProgressProps) {
  const settings = useSignal(curveSettingsFrom(location.search));
  const { x } = settings.value;
  const steps = useCurves(path, "step", turn);
  const shown = useCurves(path, x, x === "step" ? turn : gradientTurn);
  const change = (part: Partial<CurveSettings>) => {
    settings.value = { ...settings.value, ...part };
    const query = curveQuery(settings.value);
    history.replaceState(history.state, "", location.pathname + (query === "" ? "" : `?${query}`));
  };
  const totals = jobs.find(({ kind, totals }) => kind === "rl" && totals !== null)?.totals ?? null;
  const problem = shown.error ?? steps.error;
  return (
    <>
      <section aria-label="Health">
        <h2 class="sr-only">Health</h2>
        <ul class="health">
          {healthOf(steps.columns ?? {}, totals).map(({ mood, text, meaning }) => (
            <li key={text}>
              <span class={`chip ${mood}`} title={meaning}>
                {text}
              </span>{" "}
              <span class="muted">{meaning}</span>
            </li>
          ))}
        </ul>
      </section>
      <section aria-label="Curves" class="serving">
        <h2 class="sr-only">Curves</h2>
        <CurveBar settings={settings.value} onChange={change} />
        {problem !== null && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        {shown.columns === null ? (
          <p class="muted">Loading…</p>
        ) : (
          <Curves columns={shown.columns} settings={settings.value} />
        )}
      </section>
    </>
  );
}
