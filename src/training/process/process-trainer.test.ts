import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, expect, it } from "vitest";
import { compiledEntry } from "../../system/package.ts";
import type { TrainerTask } from "../contract.ts";
import { ProcessTrainer } from "./process-trainer.ts";
import { ForkedProcess, type TrainerProcess } from "./trainer-process.ts";

const task = { weights: "float32", baseModel: "m" } as TrainerTask;
const never = new AbortController().signal;
let trainer: ProcessTrainer;
afterEach(() => trainer.close());

/** A child that says which process did the task; `program` runs first. */
function start(program: string, idleMs: number): ProcessTrainer {
  const entry = join(mkdtempSync(join(tmpdir(), "trainer-")), "child.mjs");
  const done = 'process.send({ type: "done", result: { tokens: process.pid } })';
  writeFileSync(entry, `process.on("message", () => { ${program}; ${done}; });`);
  trainer = new ProcessTrainer({ start: () => new ForkedProcess(pathToFileURL(entry)), idleMs, cancelGraceMs: 1000 });
  return trainer;
}
const run = async () => (await trainer.train(task, () => {}, never)).tokens;

it("keeps a process for the next task, and gives no task to one that was ended for being idle", async () => {
  start("", 60_000);
  expect(await run()).toBe(await run());
  await trainer.close();

  start("", 5);
  const first = await run();
  const due = performance.now() + 20;
  while (performance.now() < due);
  // The idle timer is due before this one: its process has got the signal, and has not ended yet.
  const second = await new Promise<number>((resolve, reject) => setTimeout(() => run().then(resolve, reject), 0));
  expect(second).not.toBe(first);
});

it.each(["cancelled", "closed"])("does not try a task again that is %s while its lost process ends", async (how) => {
  const cancel = new AbortController();
  const started: TrainerProcess[] = [];
  let [end, ending] = [(): void => {}, (): void => {}];
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const isEnding = new Promise<void>((resolve) => {
    ending = resolve;
  });
  const startLost = (): TrainerProcess => {
    const process: TrainerProcess = {
      ...{ onMessage: null, onEnd: null, ended: null },
      kill: () => {
        ending();
        return ended;
      },
      send: () => process.onEnd!(new Error("it was lost")),
    };
    started.push(process);
    return process;
  };
  trainer = new ProcessTrainer({ start: startLost, idleMs: 60_000, cancelGraceMs: 1000, tries: 3 });
  const training = trainer.train(task, () => {}, cancel.signal);
  await isEnding;
  const closing = how === "closed" ? trainer.close() : cancel.abort(new Error("the job was cancelled"));
  end();
  await expect(training).rejects.toThrow(how);
  await closing;
  expect(started).toHaveLength(1);
});

it("ignores SIGINT and SIGTERM, which reach every process, because the server stops jobs", async () => {
  const child = fork(compiledEntry(import.meta.url, "../onnx/trainer-entry.ts"), { stdio: "ignore" });
  const end = once(child, "exit");
  const answer = async () => {
    child.send({ type: "train", task: {} });
    return ((await Promise.race([once(child, "message"), end])) as [{ type: string }])[0];
  };
  expect(await answer()).toMatchObject({ type: "failed" });
  for (const signal of ["SIGINT", "SIGTERM"] as const) child.kill(signal);
  expect(await answer()).toMatchObject({ type: "failed" });
  child.disconnect();
  expect(await end).toEqual([0, null]);
});

it.each([
  ["the name of a file", "could not use a file", "/no/such/secret-model", "secret-model"],
  ["the text of a mistake in the program", "met an unexpected error", undefined, "must be of type string"],
])("tells %s to the log only", async (_what, said, adapter, secret) => {
  const child = fork(compiledEntry(import.meta.url, "../onnx/trainer-entry.ts"), { stdio: "ignore" });
  child.send({ type: "update", task: { baseModel: "models/flywheel-mini", adapter } });
  const [answer] = (await once(child, "message")) as [{ type: string; message: string; detail: string }];
  child.disconnect();
  expect(answer).toEqual({
    type: "failed",
    message: expect.stringContaining(`the trainer ${said}, which the server's log`),
    detail: expect.stringContaining(secret),
  });
});
