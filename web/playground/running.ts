// What runs at the moment: requests, tool loops, branches, comparisons. Stop ends all of it.
import { signal } from "@preact/signals";

const running = new Set<{ stopper: AbortController; end: Promise<unknown> }>();

/** True while anything runs, also between the requests of a tool loop. */
export const isWorking = signal(false);

/** Stops whatever runs. Resolves when all of it has ended. */
export async function stop(): Promise<void> {
  const ends = [...running].map(({ stopper, end }) => {
    stopper.abort();
    return end;
  });
  await Promise.allSettled(ends);
}

export async function work<Result>(run: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const stopper = new AbortController();
  const end = run(stopper.signal);
  const one = { stopper, end };
  running.add(one);
  isWorking.value = true;
  return end.finally(() => {
    running.delete(one);
    isWorking.value = running.size > 0;
  });
}
