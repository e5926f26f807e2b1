// Long work on the main thread, such as preparing a training job, calls `giveWay` often and lets requests go first when
// its turn has lasted long enough. Turns are measured in time, because a prompt takes anything from microseconds to 100
// ms.

import { Turns } from "./turns.ts";

/** Resolves at once, or in a later turn of the event loop if this turn has lasted long enough. Rejects if cancelled. */
export type GiveWay = () => Promise<void>;

const TURN_MS = 8;

/** Shared by all jobs: only one of them continues per turn of the loop. */
const turns = new Turns();

export function givingWay(signal?: AbortSignal): GiveWay {
  let turnEnds = performance.now() + TURN_MS;
  return async () => {
    if (performance.now() >= turnEnds) {
      await turns.next();
      turnEnds = performance.now() + TURN_MS;
    }
    signal?.throwIfAborted();
  };
}

/** Runs work that pauses by yielding, and gives way in its pauses. */
export async function inTurns<T>(steps: Generator<undefined, T>, giveWay = givingWay()): Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    await giveWay();
  }
}
