// How to sample, and how full the context is.
import { number } from "../format.ts";
import { facts } from "../server-facts.ts";
import { PARAMS, type ParamName } from "./settings.ts";
import { change, columns, settings } from "./state.ts";
import { NumberField } from "./toolbar.tsx";

export function SidePanel() {
  const { params, alternatives, extra } = settings.value;
  const setParam = (name: ParamName, value: number | null) => {
    const { [name]: _old, ...rest } = params;
    change({ params: value === null ? rest : { ...rest, [name]: value } });
  };
  return (
    <aside class="side-panel" aria-label="Settings">
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

/** What the server does without the field. Penalties and the shortest length have no default but "off". */
const OFF: Partial<Record<ParamName, number>> = { min_tokens: 0, presence_penalty: 0, frequency_penalty: 0 };

function shownDefault(name: ParamName): string {
  const value = facts.value?.sampling_defaults[name] ?? OFF[name];
  return value === undefined || value === null ? "no limit" : number(value);
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
