// Above the conversation: which models answer, how answers are shown, and the ways to the list of chats and to the settings.
import type { Signal } from "@preact/signals";
import { models } from "../models.ts";
import { Choice } from "../parts/choice.tsx";
import { useLocation } from "../router.ts";
import { facts, may } from "../server-facts.ts";
import { newChat } from "./chat-actions.ts";
import { LIST_BUTTON } from "./chat-list.tsx";
import { ModelMenu } from "./model-menu.tsx";
import { COLOURS, type Colour, type Panel, VIEWS, type View } from "./settings.ts";
import { SETTINGS_BUTTON } from "./settings-drawer.tsx";
import { change, chat, columnModels, isFairComparison, settings, update } from "./state.ts";

const MOST_COLUMNS = 4;
const VIEW_NAMES: Record<View, string> = { text: "text", tokens: "tokens", raw: "raw JSON", prompt: "prompt" };
const COLOUR_NAMES: Record<Colour, string> = { surprise: "surprise", difference: "A − B", legal: "legal mass" };
const PANEL_BUTTONS: readonly { name: Panel; word: string; title: string; trains?: true }[] = [
  { name: "teach", word: "Teach", title: "Rate answers and train on them", trains: true },
  { name: "time", word: "Time machine", title: "One answer under every step of its policy", trains: true },
  { name: "many", word: "Many prompts", title: "What two models answer to many prompts, with the same seeds" },
];

export interface TopBarProps {
  isListOpen: Signal<boolean>;
  isDrawerOpen: Signal<boolean>;
}

export function TopBar({ isListOpen, isDrawerOpen }: TopBarProps) {
  const location = useLocation();
  const start = async () => location.route(`/?chat=${await newChat()}`);
  return (
    <div class="top-bar">
      <div class="bar-row">
        <button
          id={LIST_BUTTON}
          type="button"
          class="list-button"
          aria-expanded={isListOpen.value}
          aria-controls="chat-list"
          onClick={() => {
            isListOpen.value = !isListOpen.value;
          }}
        >
          Chats
        </button>
        <button type="button" onClick={() => void start()}>
          New chat
        </button>
        <Models />
        <button
          id={SETTINGS_BUTTON}
          type="button"
          aria-expanded={isDrawerOpen.value}
          aria-controls="settings"
          onClick={() => {
            isDrawerOpen.value = !isDrawerOpen.value;
          }}
        >
          Settings
        </button>
      </div>
      <div class="bar-row quiet-row">
        <ViewChoice />
        <span class="spring" />
        <Panels />
      </div>
    </div>
  );
}

function Models() {
  const chosen = columnModels.value;
  const other = nextModel(chosen);
  const setModel = (index: number, name: string) =>
    change({ models: chosen.map((model, i) => (i === index ? name : model)).filter((model) => model !== "") });
  const remove = (index: number) => {
    update({ columns: chat.value.columns.filter((_column, i) => i !== index) });
    setModel(index, "");
  };
  return (
    <div class="models">
      {chosen.map((model, i) => (
        <span class="row nowrap" key={i}>
          <ModelMenu label={`Model ${i + 1}`} value={model} onChange={(name) => setModel(i, name)} />
          {chosen.length > 1 && (
            <button type="button" class="small quiet" aria-label={`Remove ${model}`} onClick={() => remove(i)}>
              ×
            </button>
          )}
        </span>
      ))}
      {chosen.length < MOST_COLUMNS && chosen.length > 0 && (
        <button
          type="button"
          disabled={other === null}
          title={other === null ? "There is no other model to compare with." : `Ask ${other} the same`}
          onClick={() => change({ models: [...chosen, other!] })}
        >
          + compare
        </button>
      )}
      {chosen.length > 1 && <Coupled />}
    </div>
  );
}

/** A column has a model of its own: the next that has none yet. A step of a policy is compared with the policy's beginning. */
function nextModel(chosen: readonly string[]): string | null {
  const names = models.value.map(({ id }) => id);
  const last = chosen.at(-1) ?? "";
  const [, policy, step] = /^(.*?)@(\d+)$/.exec(last) ?? [];
  const start = step === undefined || step === "0" ? [] : [`${policy}@0`];
  return [...start, ...names].find((name) => !chosen.includes(name)) ?? null;
}

function Coupled() {
  const { isCoupled } = settings.value;
  return (
    <>
      <label title="Columns share the seed, so they draw the same random numbers.">
        <input
          type="checkbox"
          checked={isCoupled}
          onChange={(event) => change({ isCoupled: event.currentTarget.checked })}
        />
        coupled
      </label>
      {isFairComparison.value && (
        <span class="chip good" title="Same seed, same settings, same conversation.">
          every difference is the model's
        </span>
      )}
    </>
  );
}

function ViewChoice() {
  const { view, colour } = settings.value;
  return (
    <>
      <Choice
        legend="View"
        name="view"
        names={VIEW_NAMES}
        values={VIEWS}
        value={view}
        onChange={(value) => change({ view: value })}
      />
      {view === "tokens" && (
        <Choice
          legend="Colour"
          name="colour"
          names={COLOUR_NAMES}
          values={COLOURS.filter((name) => name !== "difference" || columnModels.value.length > 1)}
          value={colour}
          onChange={(value) => change({ colour: value })}
        />
      )}
    </>
  );
}

function Panels() {
  const { panel } = settings.value;
  const canTrain = facts.value?.features.training === true && may("training");
  return (
    <>
      {PANEL_BUTTONS.filter(({ trains }) => trains === undefined || canTrain).map(({ name, word, title }) => (
        <button
          key={name}
          type="button"
          class="small"
          title={title}
          aria-pressed={panel === name}
          onClick={() => change({ panel: panel === name ? "none" : name })}
        >
          {word}
        </button>
      ))}
    </>
  );
}
