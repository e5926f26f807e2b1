// How to sample and how to show it.
import type { ComponentChildren } from "preact";
import { number } from "../format.ts";
import { facts } from "../server-facts.ts";
import { COLOURS, type Colour, PARAMS, type ParamName, VIEWS, type View } from "./settings.ts";
import { change, columnModels, columns, settings } from "./state.ts";
import { NumberField } from "./toolbar.tsx";

const VIEW_NAMES: Record<View, string> = { text: "text", tokens: "tokens", raw: "raw JSON", prompt: "prompt" };
const COLOUR_NAMES: Record<Colour, string> = {
  surprise: "surprise",
  difference: "A − B",
  legal: "legal mass",
};

export function SidePanel() {
  const { params, alternatives, view, colour, extra } = settings.value;
  const setParam = (name: ParamName, value: number | null) => {
    const { [name]: _old, ...rest } = params;
    change({ params: value === null ? rest : { ...rest, [name]: value } });
  };
  return (
    <aside class="side-panel" aria-label="Settings">
      <Choice
        legend="View"
        name="view"
        names={VIEW_NAMES}
        values={VIEWS}
        value={view}
        onChange={(v) => change({ view: v })}
      />
      {view === "tokens" && (
        <Choice
          legend="Colour"
          name="colour"
          names={COLOUR_NAMES}
          values={COLOURS.filter((name) => name !== "difference" || columnModels.value.length > 1)}
          value={colour}
          onChange={(c) => change({ colour: c })}
        />
      )}
      <ContextFill />
      <details open>
        <summary>Sampling</summary>
        <p class="muted hint">Empty fields have the server's default.</p>
        {PARAMS.map(({ name, min, max, step, what }) => (
          <NumberField
            key={name}
            name={name}
            title={what}
            value={params[name] ?? null}
            least={min}
            most={max}
            step={step}
            placeholder={shownDefault(name)}
            onChange={(value) => setParam(name, value)}
          />
        ))}
        <NumberField
          name="alternatives"
          title="likeliest tokens per place (logprobs); 0: none"
          value={alternatives}
          least={0}
          most={20}
          onChange={(value) => change({ alternatives: value ?? 0 })}
        />
        <label class="stacked">
          <span>more fields, as JSON</span>
          <textarea
            class="mono"
            rows={2}
            spellcheck={false}
            placeholder={'{"stop": ["\\n"]}'}
            value={extra}
            onInput={(event) => change({ extra: event.currentTarget.value })}
          />
        </label>
      </details>
    </aside>
  );
}

/** What the server does without the field. */
function shownDefault(name: ParamName): string {
  const value = facts.value?.sampling_defaults[name];
  return value === undefined || value === null ? "default" : number(value);
}

function ContextFill() {
  const most = facts.value?.limits.max_model_len;
  const used = columns.value.map(({ exchange }) => {
    const longest = Math.max(0, ...(exchange?.replies ?? []).map(({ tokenIds }) => tokenIds.length));
    return (exchange?.promptIds.length ?? 0) + longest;
  });
  const fullest = Math.max(0, ...used);
  if (most === undefined || fullest === 0) return null;
  return (
    <div class="context-fill">
      <label for="context-meter">Context</label>
      <meter id="context-meter" min={0} max={most} high={most * 0.8} value={fullest} />
      <span class="num muted">
        {number(fullest)} of {number(most)}
      </span>
    </div>
  );
}

interface ChoiceProps<Value extends string> {
  legend: string;
  name: string;
  names: Record<Value, ComponentChildren>;
  values: readonly Value[];
  value: Value;
  onChange: (value: Value) => void;
}

/** One of a few, as radio buttons. */
export function Choice<Value extends string>({ legend, name, names, values, value, onChange }: ChoiceProps<Value>) {
  return (
    <fieldset class="choice">
      <legend>{legend}</legend>
      {values.map((one) => (
        <label key={one}>
          <input type="radio" name={name} checked={one === value} onChange={() => onChange(one)} />
          {names[one]}
        </label>
      ))}
    </fieldset>
  );
}
