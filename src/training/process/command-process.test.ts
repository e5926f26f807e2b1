import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { RL_DEFAULTS } from "../config.ts";
import type { BatchSequence, StepMetrics, TrainerTask } from "../contract.ts";
import { CommandProcess } from "./command-process.ts";
import { ProcessTrainer } from "./process-trainer.ts";

const FIXTURE = fileURLToPath(new URL("../../../test/fixtures/llama", import.meta.url));
const FAKE = fileURLToPath(new URL("../../../test/support/trainer-process.mjs", import.meta.url));
const NODE = `"${process.execPath}"`;
const CRASH = 101;
const FAIL = 102;
const DEAF = 103;
const HANG = 105;
const never = new AbortController().signal;

let trainer: ProcessTrainer;
afterEach(() => trainer.close());

interface StartOptions {
  command?: string;
  env?: Record<string, string>;
  stallMs?: number;
  startMs?: number;
  pingMs?: number;
  tries?: number;
  onLost?: (error: Error) => void;
}

function start(options: StartOptions = {}) {
  trainer = new ProcessTrainer({
    start: () =>
      new CommandProcess({
        command: options.command ?? `${NODE} "${FAKE}"`,
        env: { FAKE_TRAINER_STEP_MS: "5", ...options.env },
        startMs: options.startMs ?? 300_000,
        pingMs: options.pingMs ?? 60_000,
      }),
    idleMs: 60_000,
    cancelGraceMs: 300,
    ...(options.stallMs === undefined ? {} : { stallMs: options.stallMs }),
    tries: options.tries ?? 1,
    ...(options.onLost === undefined ? {} : { onLost: options.onLost }),
  });
}

/** `first`: the first token, which may ask the fake for a fault. */
function task(first = 5, steps = 3): TrainerTask {
  const folder = mkdtempSync(join(tmpdir(), "command-"));
  const batch = join(folder, "batch.jsonl");
  const sequence: BatchSequence = {
    ...{ ids: [first, 6, 7], mask: [0, 1, 1], oldLogprobs: [null, -1, -1] },
    ...{ advantage: 1, weight: 1, group: -1 },
  };
  writeFileSync(batch, `${JSON.stringify(sequence)}\n`);
  return {
    ...{ baseModel: FIXTURE, weights: "float32", positionsPerBlock: 16, adapter: FIXTURE, optimizerState: null, batch },
    steps: Array.from({ length: steps }, () => ({ from: 0, to: 1, learningRate: 1e-3 })),
    objective: { kind: "policy", loss: RL_DEFAULTS.loss, precalculateLogprobs: false, reference: null },
    ...{
      optimizer: RL_DEFAULTS.optimizer,
      output: join(folder, "step"),
      tokenNumbers: null,
      threads: 1,
      activationBytes: 1e9,
    },
  };
}

async function run(what: TrainerTask, signal = never) {
  const steps: StepMetrics[] = [];
  const result = await trainer.train(what, (metrics) => steps.push(metrics), signal);
  return { steps, result };
}

const processesOf = (marker: string) =>
  execFileSync("ps", ["-eo", "pid,args"], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes(marker) && !line.includes("ps -eo"));

/** Like torchrun, this command starts the program that dials back. `marker`: an argument of both. */
function nested(marker: string): string {
  const parent = `const c = require("node:child_process").spawn(process.execPath, [${JSON.stringify(FAKE)}, "${marker}"], { stdio: "inherit" }); c.on("exit", (code) => process.exit(code ?? 1))`;
  return `${NODE} -e '${parent}' ${marker}`;
}

describe("a trainer behind a command", () => {
  it("runs tasks one after the other in a process that stays warm", async () => {
    start();
    const first = task();
    const { steps, result } = await run(first);
    expect(steps).toHaveLength(3);
    expect(result.tokens).toBe(3);
    expect(readdirSync(first.output).sort()).toEqual([
      "adapter_config.json",
      "adapter_model.safetensors",
      "optimizer.safetensors",
    ]);
    expect((await run(task())).steps).toEqual(steps);
  });

  it("asks the process for its limits, before and after tasks", async () => {
    start({ env: { FAKE_TRAINER_LONGEST: "77" } });
    const { baseModel, weights, positionsPerBlock, activationBytes } = task();
    const asked = { baseModel, weights, positionsPerBlock, activationBytes, maxSequenceLength: 512, rank: 2 };
    expect(await trainer.limits(asked)).toEqual({ maxTrainedLength: 77 });
    expect((await run(task())).steps).toHaveLength(3);
    expect(await trainer.limits(asked)).toEqual({ maxTrainedLength: 77 });
  });

  it("fails only the task of a process that crashes, and starts another", async () => {
    start();
    await expect(run(task(CRASH))).rejects.toThrow("ended with code 7; the server's log has its last words");
    await expect(run(task(FAIL))).rejects.toThrow("the fake trainer was told to fail");
    expect((await run(task())).steps).toHaveLength(3);
  });

  it("obeys a cancellation, and kills a process that does not", async () => {
    start();
    for (const first of [5, DEAF]) {
      const stop = new AbortController();
      const ending = run(task(first, 1000), stop.signal);
      setTimeout(() => stop.abort(new Error("not wanted any more")), 100);
      await expect(ending).rejects.toThrow("not wanted any more");
    }
  });

  it("ends a process that makes no progress", async () => {
    start({ stallMs: 200 });
    await expect(run(task(HANG))).rejects.toThrow("finished no gradient step in 0.2 seconds");
  });

  it("ends a process that stops answering pings", async () => {
    start({ env: { FAKE_TRAINER_SILENT: "1" }, pingMs: 30 });
    await expect(run(task(HANG))).rejects.toThrow("was ended: it stopped answering");
  });

  it("refuses another protocol, and waits in vain for whoever does not know the secret", async () => {
    start({ env: { FAKE_TRAINER_PROTOCOL: "3" } });
    await expect(run(task())).rejects.toThrow("it speaks protocol 3; this server speaks 2");
    start({ env: { FAKE_TRAINER_NONCE: "guess" }, startMs: 2000 });
    await expect(run(task())).rejects.toThrow(/did not dial back|ended with code 0/);
  });

  it("says what a command that cannot run wrote only to the log", async () => {
    start({ command: "no-such-trainer-command" });
    const error = await run(task()).catch((thrown: Error) => thrown);
    expect(error).toMatchObject({ message: expect.stringContaining("ended with code 127") });
    expect((error as Error).cause).toContain("no-such-trainer-command");
  });

  it("leaves no process behind, not even grandchildren of a killed command", async () => {
    const marker = `left-behind-${process.pid}`;
    start({ command: nested(marker) });
    const ending = run(task(HANG));
    ending.catch(() => {});
    await expect.poll(() => processesOf(marker).length).toBe(2);
    await trainer.close();
    await expect(ending).rejects.toThrow("was ended by SIGTERM");
    expect(processesOf(marker)).toEqual([]);
  });

  it("gives up a task that always ends its process", async () => {
    const lost: string[] = [];
    start({ tries: 3, onLost: (error) => lost.push(error.message) });
    await expect(run(task(CRASH))).rejects.toThrow("ended with code 7");
    expect(lost).toEqual([expect.stringContaining("code 7"), expect.stringContaining("code 7")]);
  });

  it("runs a task again after each of 20 kills at random moments, and tells every step once", async () => {
    const marker = `killed-${process.pid}`;
    for (let kill = 0; kill < 20; kill++) {
      start({ command: nested(marker), tries: 2 });
      const what = task(5, 20);
      const ending = run(what);
      await sleep(Math.random() * 400);
      const alive = processesOf(marker).map((line) => Number.parseInt(line, 10));
      const victim = alive[Math.floor(Math.random() * alive.length)];
      try {
        if (victim !== undefined) process.kill(victim, "SIGKILL");
      } catch (error) {
        // it has ended by itself in the meantime
        expect(error).toMatchObject({ code: "ESRCH" });
      }
      const { steps } = await ending;
      expect(steps).toHaveLength(20);
      expect(readdirSync(what.output)).toHaveLength(3);
      await trainer.close();
      await expect.poll(() => processesOf(marker)).toEqual([]);
    }
  });
});
