// How a policy does: a reading of its curves, and the curves, beside those of other policies. What is set is in the address.
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { TrainableModel, TrainingJob } from "../../src/client/types.ts";
import { useQuery } from "../parts/use-query.ts";
import { listPolicies } from "../policies.ts";
import { CurveBar } from "./curve-bar.tsx";
import { metricsOf } from "./curve-charts.ts";
import { MOST_OTHERS } from "./curve-settings.ts";
import { Curves, SOURCE_COLOURS } from "./curves.tsx";
import { healthOf } from "./health.ts";
import { useCurveSettings } from "./use-curve-settings.ts";
import { useCurves } from "./use-curves.ts";

export interface ProgressProps {
  policy: TrainableModel;
  /** Changes when there is a new step. */
  turn: string;
  /** Changes when there is a new gradient step. */
  gradientTurn: string;
  /** The newest first. */
  jobs: readonly TrainingJob[];
}

export function Progress({ policy, turn, gradientTurn, jobs }: ProgressProps) {
  const [{ value: settings }, change] = useCurveSettings();
  const { x, others } = settings;
  const all = useQuery("policies", listPolicies);
  const path = pathOf(policy.id);
  const own = { path, turn: x === "step" ? turn : gradientTurn };
  const steps = useCurves([{ path, turn }], "step");
  const shown = useCurves([own, ...others.map((id) => ({ path: pathOf(id), turn: "" }))], x);
  const names = [policy.id, ...others].map((id) => all.data?.find((one) => one.id === id)?.name ?? id.slice(0, 8));
  names[0] = policy.name;
  const sources = useMemo(
    () => (shown.columns ?? []).map((columns, i) => ({ name: names[i]!, columns })),
    [shown.columns, names.join()],
  );
  const totals = jobs.find(({ kind, totals }) => kind === "rl" && totals !== null)?.totals ?? null;
  const problem = shown.error ?? steps.error;
  return (
    <>
      <section aria-label="Health">
        <h2 class="sr-only">Health</h2>
        <ul class="health">
          {healthOf(steps.columns?.[0] ?? {}, totals).map(({ mood, text, meaning }) => (
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
        <CurveBar settings={settings} metrics={metricsOf(shown.columns ?? [])} hasSteps onChange={change} />
        <Others
          policies={(all.data ?? []).filter(({ id }) => id !== policy.id)}
          chosen={others}
          names={names}
          onChange={(next) => change({ others: next })}
        />
        {problem !== null && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        {shown.columns === null ? (
          problem === null && <p class="muted">Loading…</p>
        ) : (
          <Curves sources={sources} settings={settings} />
        )}
      </section>
    </>
  );
}

interface OthersProps {
  policies: readonly TrainableModel[];
  /** Ids. */
  chosen: readonly string[];
  /** Of the page's policy, then of those. */
  names: readonly string[];
  onChange: (chosen: readonly string[]) => void;
}

/** The other policies in the same charts. */
function Others({ policies, chosen, names, onChange }: OthersProps) {
  const left = policies.filter(({ id }) => !chosen.includes(id));
  const row = useRef<HTMLDivElement>(null);
  const isChanged = useRef(false);
  const change = (next: readonly string[]) => {
    isChanged.current = true;
    onChange(next);
  };
  useEffect(() => {
    // the button or the menu that was used may be gone
    if (isChanged.current) row.current?.querySelector<HTMLElement>("select, .source:last-child button")?.focus();
    isChanged.current = false;
  }, [chosen]);
  if (policies.length === 0 && chosen.length === 0) return null;
  return (
    <div ref={row} class="row">
      {chosen.length > 0 &&
        names.map((name, i) => (
          <span key={i} class="chip source" style={{ "--tint": `var(${SOURCE_COLOURS[i]})` }}>
            {name}
            {i > 0 && (
              <button
                type="button"
                class="small quiet"
                aria-label={`Take ${name} out of the charts`}
                onClick={() => change(chosen.filter((_, at) => at !== i - 1))}
              >
                ×
              </button>
            )}
          </span>
        ))}
      {left.length > 0 && chosen.length < MOST_OTHERS && (
        <label>
          beside{" "}
          <select value="" onChange={(event) => change([...chosen, event.currentTarget.value])}>
            <option value="">another policy…</option>
            {left.map(({ id, name, project }) => (
              <option key={id} value={id}>
                {name} ({project})
              </option>
            ))}
          </select>
        </label>
      )}
    </div>
  );
}

function pathOf(id: string): string {
  return `/preview/models/${encodeURIComponent(id)}`;
}
