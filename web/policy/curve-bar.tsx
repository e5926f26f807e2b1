// How the curves are shown.
import { useSignal } from "@preact/signals";
import { Choice } from "../parts/choice.tsx";
import { type CurveSettings, XS } from "./curve-settings.ts";

export interface CurveBarProps {
  settings: CurveSettings;
  /** Names of all metrics. */
  metrics: readonly string[];
  /** Whether there are curves over steps, too. */
  hasSteps: boolean;
  onChange: (part: Partial<CurveSettings>) => void;
}

export function CurveBar({ settings, metrics, hasSteps, onChange }: CurveBarProps) {
  const { x, smoothing, isLog, pattern, keys } = settings;
  const isOpen = useSignal(false);
  return (
    <div class="row curve-bar">
      {hasSteps && (
        <Choice
          legend="Over"
          name="x"
          names={{ step: "steps", gradient_step: "gradient steps" }}
          values={XS}
          value={x}
          onChange={(value) => onChange({ x: value })}
        />
      )}
      <label class="number-field" title="An average over the values before; the raw curve stays visible">
        <span>smooth {smoothing}</span>
        <input
          type="range"
          min={0}
          max={0.95}
          step={0.05}
          value={smoothing}
          onInput={(event) => onChange({ smoothing: event.currentTarget.valueAsNumber })}
        />
      </label>
      <label title="Equal factors are equal distances">
        <input type="checkbox" checked={isLog} onChange={(event) => onChange({ isLog: event.currentTarget.checked })} />
        log scale
      </label>
      <details
        class="metric-columns"
        onToggle={({ currentTarget }) => {
          isOpen.value = currentTarget.open;
        }}
      >
        <summary>Columns{keys.length > 0 && ` (${keys.length})`}</summary>
        {isOpen.value && <Columns {...{ metrics, keys, onChange }} />}
      </details>
      <label class="number-field" title="A regular expression over the names of metrics">
        <span>metrics (regex)</span>
        <input
          value={pattern}
          placeholder="the main ones"
          spellcheck={false}
          onInput={(event) => onChange({ pattern: event.currentTarget.value })}
        />
      </label>
    </div>
  );
}

/** Which metrics are drawn. */
function Columns({
  metrics,
  keys,
  onChange,
}: { metrics: readonly string[]; keys: readonly string[] } & Pick<CurveBarProps, "onChange">) {
  return (
    <fieldset>
      <legend class="sr-only">Metrics to draw; none: the main ones</legend>
      {metrics.map((key) => (
        <label key={key}>
          <input
            type="checkbox"
            checked={keys.includes(key)}
            onChange={({ currentTarget }) =>
              onChange({
                keys: currentTarget.checked ? [...keys, key] : keys.filter((one) => one !== key),
                pattern: "",
              })
            }
          />
          {key}
        </label>
      ))}
      {keys.length > 0 && (
        <button type="button" class="small" onClick={() => onChange({ keys: [] })}>
          The main ones
        </button>
      )}
    </fieldset>
  );
}
