// The gradient steps of a job as they happen: a line of losses and the newest numbers.
import type { TrainingEvent } from "../../src/client/types.ts";
import { number } from "../format.ts";
import { Sparkline } from "../parts/sparkline.tsx";

const SHOWN = { loss: "loss", grad_norm: "gradient norm", entropy: "entropy" };

export function LossLine({ events }: { events: readonly TrainingEvent[] }) {
  const newest = events.at(-1)?.data;
  if (newest === undefined) return null;
  const losses = events.flatMap(({ data }) => data.loss ?? []);
  return (
    <p class="row num">
      {losses.length > 1 && <Sparkline values={losses} label={`Loss of ${losses.length} gradient steps`} />}
      {Object.entries(SHOWN).map(
        ([key, name]) =>
          newest[key] !== undefined && (
            <span key={key}>
              {name} {number(newest[key])}
            </span>
          ),
      )}
    </p>
  );
}
