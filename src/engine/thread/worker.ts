// Entry of the engine thread. Makes the model that the start message names, loads its predecessor's adapters, runs the
// loop, and posts one message per step. An unexpected error ends the thread, and worker-host.ts restarts it.

import { parentPort, workerData } from "node:worker_threads";
import { StatCells } from "../stats.ts";
import type { FromWorker, ToWorker, WorkerStart } from "./engine-client.ts";
import { type CreateRunner, EngineLoop, reloadAdapters } from "./engine-loop.ts";

if (parentPort === null) throw new Error("engine/thread/worker is the entry of a worker thread, not a program");
const port = parentPort;
const post = (message: FromWorker): void => port.postMessage(message);

const start = workerData as WorkerStart;
const { createRunner } = (await import(start.module)) as { createRunner?: CreateRunner };
if (createRunner === undefined) throw new Error(`${start.module} does not export createRunner`);
const model = await createRunner(start.options, start.adapters.length > 0);

const crash = (error: unknown): void => {
  // Thrown outside any promise, so that it ends the thread as an uncaught error.
  setImmediate(() => {
    throw error;
  });
};
const loop = new EngineLoop(model, start.scheduling, new StatCells(start.stats), post, crash);
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
