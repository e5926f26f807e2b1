// What the serving page knows about the engine: the first answer with its past, then what a stream adds every second.

import type { EnginePoint, EngineState, EngineStep, RunningRequest } from "../../src/client/types.ts";

/** What the stream tells every second. */
type Snapshot = Omit<EngineState, "history" | "steps">;

const MOST_POINTS = 900;
const MOST_STEPS = 4096;

/** The state after one event of the stream. Unknown events change nothing. */
export function afterEvent(state: EngineState, event: string, data: string): EngineState {
  switch (event) {
    case "snapshot":
      return { ...state, ...(JSON.parse(data) as Snapshot) };
    case "point":
      return { ...state, history: [...state.history, JSON.parse(data) as EnginePoint].slice(-MOST_POINTS) };
    case "steps":
      return { ...state, steps: [...state.steps, ...(JSON.parse(data) as EngineStep[])].slice(-MOST_STEPS) };
    default:
      return state;
  }
}

/** The newest steps of the last `ms` milliseconds as short words: d8 is 8 sequences decoded, p256 is 256 prompt tokens. */
export function tape(steps: readonly EngineStep[], now: number, ms: number, most: number): string[] {
  return steps
    .filter(({ at }) => at > now - ms)
    .slice(-most)
    .map(({ decode, prefill }) =>
      [decode > 0 ? `d${decode}` : "", prefill > 0 ? `p${prefill}` : ""].filter(Boolean).join("+"),
    );
}

/** Output tokens per second of a request since it came. */
export function rateOf({ output, age_ms }: RunningRequest): number | null {
  return output === 0 || age_ms === 0 ? null : output / (age_ms / 1000);
}
