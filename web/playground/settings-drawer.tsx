// Everything that changes what is asked: presets, sampling, the system message, the form of the output, and tools.
import type { Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { number } from "../format.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { facts } from "../server-facts.ts";
import { NumberField } from "./number-field.tsx";
import { OutputEditor } from "./output-editor.tsx";
import { Presets } from "./presets.tsx";
import { PARAMS, type ParamName, toQuery } from "./settings.ts";
import { change, lastSeed, settings } from "./state.ts";
import { ToolEditor } from "./tool-editor.tsx";

/** The button that opens it, which gets the focus back. */
export const SETTINGS_BUTTON = "settings-button";

export function SettingsDrawer({ isOpen }: { isOpen: Signal<boolean> }) {
  return isOpen.value ? <OpenDrawer isOpen={isOpen} /> : null;
}

function OpenDrawer({ isOpen }: { isOpen: Signal<boolean> }) {
  const drawer = useRef<HTMLElement>(null);
  const close = () => {
    isOpen.value = false;
    document.getElementById(SETTINGS_BUTTON)?.focus();
  };
  useEffect(() => drawer.current?.focus({ preventScroll: true }), []);
  return (
    <aside
      id="settings"
      ref={drawer}
      class="drawer"
      aria-label="Settings"
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.defaultPrevented) return;
        event.preventDefault();
        close();
      }}
    >
      <div class="row">
        <h2>Settings</h2>
        <span class="spring" />
        <button type="button" class="small quiet" aria-label="Close the settings" onClick={close}>
          ×
        </button>
      </div>
      <Presets />
      <label class="stacked">
        <span>System message</span>
        <textarea
          rows={3}
          value={settings.value.system}
          onInput={(event) => change({ system: event.currentTarget.value })}
        />
      </label>
      <Sampling />
      <details open={settings.value.output !== "text"}>
        <summary>Structured output</summary>
        <OutputEditor />
      </details>
      <details open={settings.value.tools.length > 0}>
        <summary>Tools</summary>
        <ToolEditor />
      </details>
      <ShareLink />
    </aside>
  );
}

function Sampling() {
  const { params, alternatives, extra, n, seed } = settings.value;
  const setParam = (name: ParamName, value: number | null) => {
    const { [name]: _old, ...rest } = params;
    change({ params: value === null ? rest : { ...rest, [name]: value } });
  };
  return (
    <details open>
      <summary>Sampling</summary>
      <p class="muted hint">Empty fields have the server's default.</p>
      <NumberField
        name="n"
        isExplained
        title="answers to one question"
        value={n}
        least={1}
        onChange={(value) => change({ n: value ?? 1 })}
      />
      <NumberField
        name="seed"
        isExplained
        title="the same seed draws the same random numbers"
        value={seed}
        least={0}
        placeholder={lastSeed.value === null ? "random" : `${lastSeed.value}`}
        onChange={(value) => change({ seed: value })}
      />
      {PARAMS.map(({ name, min, max, step, what }) => (
        <NumberField
          key={name}
          name={name}
          isExplained
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
        isExplained
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
  );
}

/** What the server does without the field. Penalties and the shortest length have no default but "off". */
const OFF: Partial<Record<ParamName, number>> = { min_tokens: 0, presence_penalty: 0, frequency_penalty: 0 };

function shownDefault(name: ParamName): string {
  const value = facts.value?.sampling_defaults[name] ?? OFF[name];
  return value === undefined || value === null ? "no limit" : number(value);
}

/** Servers refuse longer addresses. */
const LONGEST_LINK = 6_000;

function ShareLink() {
  const full = toQuery(settings.value);
  const isTooLong = full.length > LONGEST_LINK;
  const query = isTooLong ? toQuery({ ...settings.value, system: "", constraints: {}, extra: "" }) : full;
  return (
    <p class="muted">
      <CopyButton text={`${location.origin}/?${query}`} what="a link" label="Copy a link to these settings" />{" "}
      {isTooLong && "Texts are too long for a link and stay out of it. Export the chat to carry them."}
    </p>
  );
}
