// Entry of the engine thread. Makes the model or the loop that the start message names, loads its predecessor's adapters, runs the
// loop, and posts one message per step. An unexpected error ends the thread, and worker-host.ts restarts it.

import { parentPort, workerData } from "node:worker_threads";
import { StatCells } from "../stats.ts";
import type { FromWorker, ToWorker, WorkerStart } from "./engine-client.ts";
import { type CreateLoop, type CreateRunner, EngineLoop, type LoopParts, reloadAdapters } from "./engine-loop.ts";

if (parentPort === null) throw new Error("engine/thread/worker is the entry of a worker thread, not a program");
const port = parentPort;
const post = (message: FromWorker): void => port.postMessage(message);

const start = workerData as WorkerStart;
const { createRunner, createLoop } = (await import(start.module)) as {
  createRunner?: CreateRunner;
  createLoop?: CreateLoop;
};
const crash = (error: unknown): void => {
  // Thrown outside any promise, so that it ends the thread as an uncaught error.
  setImmediate(() => {
    throw error;
  });
};
const parts: LoopParts = {
  options: start.scheduling,
  stats: new StatCells(start.stats),
  deliver: post,
  onCrash: crash,
};
const makeLoop = async () => {
  if (createLoop !== undefined) return createLoop(start.options, parts);
  if (createRunner === undefined) throw new Error(`${start.module} exports neither createRunner nor createLoop`);
  return new EngineLoop(await createRunner(start.options, start.adapters.length > 0), parts);
};
const loop = await makeLoop();
await reloadAdapters(start.adapters, loop, (error) => post({ type: "fault", error }));

const close = async (withinMs: number): Promise<void> => {
  // The thread ends itself here, where no model runs. Terminating it from outside, inside the runtime, would abort the
  // process.
  setTimeout(() => process.exit(), withinMs).unref();
  try {
    await loop.close();
    port.close(); // the last thing that keeps the thread alive
  } catch (error) {
    crash(error);
  }
};
port.on("message", (message: ToWorker) => {
  if (message.type === "close") void close(message.withinMs);
  else loop.send(message);
});
post({ type: "ready", info: loop.info });
