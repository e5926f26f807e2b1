// Settings under a name, for prompts and sampling that are used again. They are kept in this browser.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { messageOf } from "../session.ts";
import type { Preset } from "./chat-store.ts";
import { chatStore } from "./keeping.ts";
import type { Settings } from "./settings.ts";
import { change, problem, settings } from "./state.ts";

/** What a preset has. Models and the way answers are shown stay as they are. */
const NAMES = [
  "system",
  "params",
  "n",
  "seed",
  "alternatives",
  "output",
  "constraints",
  "extra",
  "tools",
  "toolTurns",
] as const;

export function Presets() {
  const presets = useSignal<readonly Preset[]>([]);
  const name = useSignal("");
  const load = async () => {
    presets.value = await (await chatStore()).presets();
  };
  const attempt = (work: () => Promise<void>) => {
    work()
      .then(load)
      .catch((error: unknown) => {
        problem.value = messageOf(error);
      });
  };
  useEffect(() => attempt(async () => {}), []);
  const known = presets.value.find((preset) => preset.name === name.value.trim());
  const save = () =>
    attempt(async () => {
      const part = Object.fromEntries(NAMES.map((key) => [key, settings.value[key]])) as Partial<Settings>;
      await (await chatStore()).putPreset({ name: name.value.trim(), settings: part });
    });
  const remove = () =>
    attempt(async () => {
      await (await chatStore()).removePreset(name.value.trim());
      name.value = "";
    });
  return (
    <div class="presets">
      {presets.value.length > 0 && (
        <div class="row">
          {presets.value.map((preset) => (
            <button
              key={preset.name}
              type="button"
              class="small"
              aria-pressed={preset === known}
              onClick={() => {
                change(preset.settings);
                name.value = preset.name;
              }}
            >
              {preset.name}
            </button>
          ))}
        </div>
      )}
      <div class="row nowrap">
        <input
          aria-label="Name of the preset"
          placeholder="Name of a preset"
          value={name.value}
          onInput={(event) => {
            name.value = event.currentTarget.value;
          }}
        />
        <button type="button" class="small" disabled={name.value.trim() === ""} onClick={save}>
          {known === undefined ? "Save preset" : "Replace"}
        </button>
        {known !== undefined && (
          <button type="button" class="small quiet" onClick={remove}>
            Delete
          </button>
        )}
      </div>
    </div>
  );
}
