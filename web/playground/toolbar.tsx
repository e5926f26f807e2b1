// Which models answer, how often, and with which seed.
import { models } from "../models.ts";
import { change, columnModels, lastSeed, settings } from "./state.ts";

const MOST_COLUMNS = 4;

export function Toolbar() {
  const chosen = columnModels.value;
  const setModel = (index: number, name: string) =>
    change({ models: chosen.map((model, i) => (i === index ? name : model)).filter((model) => model !== "") });
  return (
    <div class="toolbar">
      {chosen.map((model, i) => (
        <span class="row nowrap" key={i}>
          <ModelInput label={`Model ${i + 1}`} value={model} onChange={(name) => setModel(i, name)} />
          {i > 0 && (
            <button type="button" class="small quiet" aria-label={`Remove ${model}`} onClick={() => setModel(i, "")}>
              ×
            </button>
          )}
        </span>
      ))}
      {chosen.length < MOST_COLUMNS && chosen.length > 0 && (
        <button type="button" onClick={() => change({ models: [...chosen, chosen.at(-1)!] })}>
          + compare
        </button>
      )}
      <NumberField
        name="n"
        title="answers"
        value={settings.value.n}
        least={1}
        onChange={(n) => change({ n: n ?? 1 })}
      />
      <NumberField
        name="seed"
        title="the same seed draws the same random numbers"
        value={settings.value.seed}
        least={0}
        placeholder={lastSeed.value === null ? "random" : `${lastSeed.value}`}
        onChange={(seed) => change({ seed })}
      />
      {chosen.length > 1 && (
        <label title="Columns share the seed, so every difference is the model's and none is luck.">
          <input
            type="checkbox"
            checked={settings.value.isCoupled}
            onChange={(event) => change({ isCoupled: event.currentTarget.checked })}
          />
          coupled
        </label>
      )}
    </div>
  );
}

/** A name from the list, or a step of it: my-agent@3. */
function ModelInput({ label, value, onChange }: { label: string; value: string; onChange: (name: string) => void }) {
  return (
    <>
      <input
        class="model-name"
        list="model-names"
        aria-label={label}
        value={value}
        spellcheck={false}
        title={`${value}. A name from the list, or a step such as my-agent@3`}
        onChange={(event) => onChange(event.currentTarget.value.trim())}
      />
      <datalist id="model-names">
        {models.value.map(({ id }) => (
          <option key={id} value={id} />
        ))}
      </datalist>
    </>
  );
}

export interface NumberFieldProps {
  name: string;
  title: string;
  value: number | null;
  least?: number;
  most?: number;
  step?: number;
  placeholder?: string;
  onChange: (value: number | null) => void;
}

/** An empty field is null. */
export function NumberField({ name, title, value, least, most, step, placeholder, onChange }: NumberFieldProps) {
  return (
    <label class="number-field" title={title}>
      <span>{name}</span>
      <input
        type="number"
        value={value ?? ""}
        min={least}
        max={most}
        step={step ?? 1}
        placeholder={placeholder}
        onInput={({ currentTarget: field }) => {
          if (field.value === "") onChange(null);
          else if (Number.isFinite(field.valueAsNumber)) onChange(field.valueAsNumber);
        }}
      />
    </label>
  );
}
