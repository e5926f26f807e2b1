// Preparing a job takes seconds of the thread that also answers requests. So whoever prepares asks often whether it is
// time to let others go first: by elapsed time, because a prompt costs anything between microseconds and 100 ms.

import { Turns } from "./turns.ts";

/** Resolves at once, or in a later turn of the event loop when this one has lasted long enough; rejects if cancelled. */
export type GiveWay = () => Promise<void>;

const TURN_MS = 8;

/** One line for all: however many jobs are being prepared, one of them goes on per turn of the loop. */
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
