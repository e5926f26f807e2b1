// The model of a column: a menu of all names with their size, what they are and whether they are loaded. Any other name can be
// typed: a step such as my-agent@3.
import { useSignal } from "@preact/signals";
import { useId, useRef } from "preact/hooks";
import { bytes, number } from "../format.ts";
import { loadModels, models } from "../models.ts";
import { listPolicies } from "../policies.ts";
import { getJson } from "../server.ts";
import { facts, may } from "../server-facts.ts";

export interface ModelMenuProps {
  label: string;
  value: string;
  onChange: (name: string) => void;
}

export function ModelMenu({ label, value, onChange }: ModelMenuProps) {
  const menu = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const details = useSignal<ReadonlyMap<string, string>>(new Map());
  const wanted = useSignal("");
  const id = useId();
  const open = () => {
    const { left, bottom } = button.current!.getBoundingClientRect();
    menu.current!.style.left = `${Math.max(8, Math.min(left, innerWidth - 328))}px`;
    menu.current!.style.top = `${bottom + 4}px`;
    wanted.value = "";
    loadModels().catch(() => {}); // the names that are known stay
    describe().then(
      (found) => {
        details.value = found;
      },
      () => {}, // names alone are enough to choose one
    );
  };
  const choose = (name: string) => {
    menu.current!.hidePopover();
    if (name !== "") onChange(name);
  };
  const word = wanted.value.trim();
  const shown = models.value.filter(({ id: name }) => name.toLowerCase().includes(word.toLowerCase()));
  return (
    <>
      <button
        ref={button}
        type="button"
        class="model-name"
        aria-label={`${label}: ${value}`}
        aria-haspopup="dialog"
        popovertarget={id}
        title={value}
      >
        <span class="one-line">{value}</span>
        <span aria-hidden="true">▾</span>
      </button>
      <div
        ref={menu}
        id={id}
        popover="auto"
        class="model-menu"
        role="dialog"
        aria-label="Models"
        onBeforeToggle={(event) => {
          if (event.newState === "open") open();
        }}
      >
        <form
          onSubmit={(event) => {
            event.preventDefault();
            choose(word);
          }}
        >
          <input
            aria-label="Find or name a model"
            placeholder="Find, or type a step: my-agent@3"
            spellcheck={false}
            autocomplete="off"
            autofocus
            value={wanted.value}
            onInput={(event) => {
              wanted.value = event.currentTarget.value;
            }}
          />
        </form>
        <ul>
          {shown.map(({ id: name }) => (
            <li key={name}>
              <button type="button" class="quiet" aria-current={name === value} onClick={() => choose(name)}>
                <b>{name}</b>
                <span class="muted">{details.value.get(name)}</span>
              </button>
            </li>
          ))}
          {word !== "" && !shown.some(({ id: name }) => name === word) && (
            <li>
              <button type="button" class="quiet" onClick={() => choose(word)}>
                Use <b>{word}</b>
              </button>
            </li>
          )}
        </ul>
      </div>
    </>
  );
}

/** What to say about each name. */
async function describe(): Promise<Map<string, string>> {
  const server = facts.value;
  const loaded = new Set<string>();
  const { adapters } = await getJson<{ adapters: ({ name: string | null } | null)[] }>("/engine");
  for (const adapter of adapters) if (adapter?.name != null) loaded.add(adapter.name.replace(/(@|:step)\d+$/, ""));
  const policies = server?.features.training === true && may("training") ? await listPolicies() : [];
  const found = new Map<string, string>();
  for (const { id, parent } of models.value) {
    const policy = policies.find(({ name, inference_name }) => name === id || inference_name === id);
    const isLoaded = [id, policy?.name, policy?.inference_name].some((name) => name !== undefined && loaded.has(name));
    const state = isLoaded ? "loaded" : "loaded when asked";
    if (parent === null)
      found.set(
        id,
        ["base model", sizeOf(server?.model.parameters), server?.dtype, "loaded"].filter(Boolean).join(" · "),
      );
    else if (policy === undefined) found.set(id, `adapter of ${parent} · ${state}`);
    else found.set(id, `policy · step ${policy.latest_step ?? 0} · ${bytes(policy.bytes ?? 0)} · ${state}`);
  }
  return found;
}

function sizeOf(parameters: number | null | undefined): string {
  if (parameters == null) return "";
  return parameters >= 1e9
    ? `${number(parameters / 1e9, 2)} B parameters`
    : `${number(parameters / 1e6, 2)} M parameters`;
}
