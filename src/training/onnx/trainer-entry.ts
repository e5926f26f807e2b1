// Entry point of the trainer process. It takes one task at a time over IPC, keeps the model for the next one, and ends
// with its parent. It runs at low priority, because serving uses the same cores.

import { constants, setPriority } from "node:os";
import { setImmediate as nextTurn } from "node:timers/promises";
import { clientText, DISK_FULL, isDiskFull } from "../../errors/faults.ts";
import type { TaskModel } from "../contract.ts";
import type { FromTrainer, ToTrainer, WorkMessage } from "../process/trainer-process.ts";
import { attentionBlock } from "./packing/pack-plan.ts";
import { longestSequence, NO_BFLOAT16 } from "./pass/pass-memory.ts";
import { TrainableModel } from "./pass/trainable-model.ts";
import { runPass, runUpdate } from "./run-pass.ts";
import { runTask } from "./run-task.ts";

class Cancelled extends Error {}

let held: { key: string; model: TrainableModel } | null = null;
let cancelled = false;

// These signals reach every process of a terminal or a service. The server decides what becomes of the job.
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => {});
process.on("disconnect", () => process.exit(0));
process.on("message", (message: ToTrainer) => {
  if (message.type === "cancel") cancelled = true;
  else void work(message);
});
setPriority(constants.priority.PRIORITY_BELOW_NORMAL);

async function work(message: WorkMessage): Promise<void> {
  cancelled = false;
  try {
    send({ type: "done", result: await resultOf(message) });
  } catch (error) {
    if (error instanceof Cancelled) send({ type: "cancelled" });
    else if (isDiskFull(error)) send({ type: "failed", message: DISK_FULL });
    else send({ type: "failed", ...toldOf(error) });
  }
}

/** What a job says of an exception whose text is not for clients, and of one of ours that names a file of this machine. */
const UNEXPECTED = "the trainer met an unexpected error, which the server's log has";
const UNUSABLE_FILE = "the trainer could not use a file, which the server's log names";

const PATH = /(?:^|[\s"'(])(?:\/|[A-Za-z]:\\)\S/;

/** Clients read the message as the error of their job. */
function toldOf(error: unknown): { message: string; detail?: string } {
  const text = clientText(error, UNEXPECTED);
  const message = PATH.test(text) ? UNUSABLE_FILE : text;
  const detail = error instanceof Error ? error.message : String(error);
  return message === detail ? { message } : { message, detail };
}

async function resultOf({ type, task }: WorkMessage) {
  if (type === "limits") return { maxTrainedLength: longestSequence(task) };
  if (type === "pass") return runPass(task, { between, modelFor });
  if (type === "update") return runUpdate(task);
  return runTask(task, { onStep: (metrics) => send({ type: "step", metrics }), between, modelFor });
}

/** Lets messages arrive, which sessions block while they run. */
async function between(): Promise<void> {
  await nextTurn();
  if (cancelled) throw new Cancelled();
}

async function modelFor(task: TaskModel, rank: number): Promise<TrainableModel> {
  const { baseModel, weights, threads, context } = task;
  if (weights === "bfloat16") throw new Error(NO_BFLOAT16);
  const positionsPerBlock = attentionBlock(weights, task.positionsPerBlock);
  const key = JSON.stringify([baseModel, weights, threads, rank, positionsPerBlock, context]);
  if (held?.key === key) return held.model;
  await held?.model.close();
  held = null;
  const options = { folder: baseModel, weights, rank, threads, positionsPerBlock };
  const model = await TrainableModel.create({ ...options, ...(context === undefined ? {} : { context }) });
  held = { key, model };
  return model;
}

function send(message: FromTrainer): void {
  process.send?.(message);
}
