// How answers are shown, what colours their tokens, and which panel is open.
import { Choice } from "../parts/choice.tsx";
import { facts, may } from "../server-facts.ts";
import { COLOURS, type Colour, type Panel, VIEWS, type View } from "./settings.ts";
import { change, columnModels, settings } from "./state.ts";

const VIEW_NAMES: Record<View, string> = { text: "text", tokens: "tokens", raw: "raw JSON", prompt: "prompt" };
const COLOUR_NAMES: Record<Colour, string> = { surprise: "surprise", difference: "A − B", legal: "legal mass" };
const PANEL_BUTTONS: readonly { name: Panel; word: string; title: string; trains?: true }[] = [
  { name: "teach", word: "Teach", title: "Rate answers and train on them", trains: true },
  { name: "time", word: "Time machine", title: "One answer under every step of its policy", trains: true },
  { name: "many", word: "Many prompts", title: "What two models answer to many prompts, with the same seeds" },
];

export function ViewChoice() {
  const { view, colour, panel } = settings.value;
  const canTrain = facts.value?.features.training === true && may("training");
  return (
    <div class="row options">
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
      <span class="spring" />
      <div class="row">
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
      </div>
    </div>
  );
}
