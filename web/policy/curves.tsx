// The curves of a policy, over its steps or over gradient steps, with a reading of them.
import { useSignal } from "@preact/signals";
import { Chart } from "../parts/chart.tsx";
import { Choice } from "../parts/choice.tsx";
import { useQuery } from "../parts/use-query.ts";
import { getJson } from "../server.ts";
import { healthOf, smoothed } from "./health.ts";

interface CurvesBody {
  columns: Record<string, (number | null)[]>;
  all_keys: string[];
}

/** Shown first, if there are any; the others match a pattern. */
const PINNED = [
  "reward",
  "train/reward",
  "val/reward",
  "loss",
  "entropy",
  "kl_old_new_k3",
  "grad_norm",
  "clip_frac_high",
  "learning_rate",
];
const XS = ["step", "gradient_step"] as const;

/** `turn` changes when there is a new step. */
export function Curves({ path, turn }: { path: string; turn: number }) {
  const x = useSignal<(typeof XS)[number]>("step");
  const smoothing = useSignal(0);
  const pattern = useSignal("");
  const { data, error } = useQuery(`${path} ${x.value} ${turn}`, (signal) =>
    getJson<CurvesBody>(`${path}/curves`, { query: { x: x.value }, signal }),
  );
  if (error !== null) return <p class="problem">{error}</p>;
  if (data === null) return <p class="muted">…</p>;
  const { columns } = data;
  const xs = (columns[x.value] ?? []).map(Number);
  const keys = Object.keys(columns).filter((key) => !XS.includes(key as "step") && isWanted(key, pattern.value));
  return (
    <section aria-label="Curves" class="serving">
      <p class="row">
        {x.value === "step" &&
          healthOf(columns).map(({ mood, text }) => (
            <span key={text} class={`chip ${mood}`}>
              {text}
            </span>
          ))}
      </p>
      <div class="row">
        <Choice
          legend="Over"
          name="x"
          names={{ step: "steps", gradient_step: "gradient steps" }}
          values={XS}
          value={x.value}
          onChange={(value) => {
            x.value = value;
          }}
        />
        <label class="number-field">
          <span>smooth</span>
          <input
            type="range"
            min={0}
            max={0.95}
            step={0.05}
            value={smoothing.value}
            onInput={(event) => {
              smoothing.value = event.currentTarget.valueAsNumber;
            }}
          />
        </label>
        <label class="number-field">
          <span>metrics (regex)</span>
          <input
            value={pattern.value}
            placeholder="the main ones"
            spellcheck={false}
            onInput={(event) => {
              pattern.value = event.currentTarget.value;
            }}
          />
        </label>
      </div>
      {xs.length === 0 && <p class="muted">No step was trained yet.</p>}
      <div class="charts">
        {xs.length > 0 &&
          keys.map((key) => (
            <Chart
              key={key}
              title={key}
              xs={xs}
              series={[{ label: "", values: smoothed(columns[key]!, smoothing.value), colour: "--accent" }]}
            />
          ))}
      </div>
    </section>
  );
}

function isWanted(key: string, pattern: string): boolean {
  if (pattern === "") return PINNED.includes(key);
  try {
    return new RegExp(pattern, "i").test(key);
  } catch {
    return key.includes(pattern);
  }
}
