// The settings of the loss, to be turned.
import { clipRange } from "../../src/training/gradient/loss.ts";
import { number } from "../format.ts";
import { type Changes, type Config, changed, KNOBS, type Knob, lossConfig } from "./knobs.ts";

export interface KnobPanelProps {
  /** As the job had them. */
  job: Config;
  changes: Changes;
  onChange: (changes: Changes) => void;
}

export function KnobPanel({ job, changes, onChange }: KnobPanelProps) {
  const config = changed(job, changes);
  const { low, high } = clipRange(lossConfig(config));
  /** What holds where a field is empty. */
  const defaults: Record<string, number> = { epsilon: 1 - low, epsilon_high: high - 1 };
  const set = (name: string, value: string) => {
    const { [name]: _before, ...rest } = changes;
    // What equals the job's own is no change.
    onChange(value === wordOf(job[name]) ? rest : { ...rest, [name]: value });
  };
  return (
    <form class="knobs" aria-label="Settings of the loss" onSubmit={(event) => event.preventDefault()}>
      {KNOBS.map((knob) => (
        <KnobField
          key={knob.name}
          knob={knob}
          value={wordOf(config[knob.name])}
          fallback={defaults[knob.name]}
          isChanged={changes[knob.name] !== undefined}
          onChange={(value) => set(knob.name, value)}
        />
      ))}
      <p class="muted num">
        Ratios are clipped to {number(low)} … {number(high)}.
      </p>
      <button type="button" disabled={Object.keys(changes).length === 0} onClick={() => onChange({})}>
        As the job had them
      </button>
    </form>
  );
}

/** As the address has it. */
function wordOf(value: unknown): string {
  return value === null || value === undefined ? "" : String(value);
}

interface KnobFieldProps {
  knob: Knob;
  value: string;
  fallback: number | undefined;
  isChanged: boolean;
  onChange: (value: string) => void;
}

function KnobField({ knob, value, fallback, isChanged, onChange }: KnobFieldProps) {
  const { name, what } = knob;
  return (
    <div class={isChanged ? "knob changed" : "knob"}>
      <label for={name}>
        {name}
        {isChanged && <span class="sr-only"> (changed)</span>}
      </label>
      {"values" in knob ? (
        <select
          id={name}
          aria-describedby={`${name}-note`}
          value={value}
          onChange={(event) => onChange(event.currentTarget.value)}
        >
          {knob.values.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      ) : "least" in knob ? (
        <>
          <input
            type="range"
            aria-label={`${name}, slider`}
            min={knob.least}
            max={knob.most}
            step={knob.step}
            value={value === "" ? (fallback ?? knob.least) : value}
            onInput={(event) => onChange(event.currentTarget.value)}
          />
          <input
            id={name}
            aria-describedby={`${name}-note`}
            type="number"
            step="any"
            value={value}
            placeholder={fallback === undefined ? "off" : number(fallback)}
            onInput={(event) => onChange(event.currentTarget.value)}
          />
        </>
      ) : (
        <input
          id={name}
          aria-describedby={`${name}-note`}
          type="checkbox"
          checked={value === "true"}
          onChange={(event) => onChange(String(event.currentTarget.checked))}
        />
      )}
      <span class="muted knob-note" id={`${name}-note`}>
        {what}
      </span>
    </div>
  );
}
