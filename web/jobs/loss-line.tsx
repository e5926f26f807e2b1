// The gradient steps of a job as they happen: a line of losses and the newest numbers.
import type { TrainingEvent } from "../../src/client/types.ts";
import { number } from "../format.ts";
import { scale } from "./histogram.ts";

const WIDTH = 120;
const HEIGHT = 24;

export function LossLine({ events }: { events: readonly TrainingEvent[] }) {
  const losses = events.flatMap(({ data }) => (typeof data.loss === "number" ? [data.loss] : []));
  const newest = events.at(-1)?.data;
  if (newest === undefined || losses.length === 0) return null;
  const y = scale(losses);
  const x = (i: number) => (losses.length === 1 ? WIDTH / 2 : (i / (losses.length - 1)) * WIDTH);
  const line = losses.map(
    (loss, i) => `${i === 0 ? "M" : "L"}${x(i).toFixed(1)} ${(HEIGHT - 2 - y(loss) * (HEIGHT - 4)).toFixed(1)}`,
  );
  return (
    <p class="loss-line row num">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`Loss of ${losses.length} gradient steps`}>
        <path d={losses.length === 1 ? `${line[0]}h0` : line.join("")} />
      </svg>
      <span>loss {number(losses.at(-1)!)}</span>
      {typeof newest.grad_norm === "number" && <span>gradient norm {number(newest.grad_norm)}</span>}
      {typeof newest.entropy === "number" && <span>entropy {number(newest.entropy)}</span>}
    </p>
  );
}
