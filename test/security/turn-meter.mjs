// Loaded into a server before its own code (node --import). It measures how much processor time the main thread spends
// between two turns of its event loop. A busy machine does not change that, as it does the time on the clock. On SIGUSR2
// it prints the longest turn in milliseconds, and starts again. Linux only.
import { readFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

if (isMainThread) {
  const used = () => Number(readFileSync("/proc/thread-self/schedstat", "utf8").split(" ")[0]) / 1e6;
  let before = used();
  let longest = 0;
  const turn = () => {
    const now = used();
    longest = Math.max(longest, now - before);
    before = now;
    setTimeout(turn, 1).unref();
  };
  turn();
  process.on("SIGUSR2", () => {
    console.error(`longest turn ${longest.toFixed(1)} ms`);
    longest = 0;
  });
}
