// The trainer that the options ask for: the embedded one, or PyTorch behind a command of the operator.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { ServedCheckpoint } from "../api/service.ts";
import type { Config } from "../config/options.ts";
import { OperatorError } from "../errors/faults.ts";
import { isGguf } from "../model/checkpoint/checkpoint-file.ts";
import type { Log } from "../observe/log.ts";
import { childEnvironment } from "../system/child-process.ts";
import { compiledEntry } from "../system/package.ts";
import { isLoopback } from "../system/text.ts";
import type { LimitsTask, TrainedWeights, Trainer } from "../training/contract.ts";
import { longestSequence } from "../training/onnx/pass/pass-memory.ts";
import { CommandProcess } from "../training/process/command-process.ts";
import { ProcessTrainer } from "../training/process/process-trainer.ts";
import { ForkedProcess } from "../training/process/trainer-process.ts";

/** How long a trainer process keeps the model in memory for the next job. */
const IDLE_MS = 120_000;
const CANCEL_GRACE_MS = 30_000;
/** PyTorch takes its time to import, more so on several machines. */
const START_MS = 300_000;
const PING_MS = 10_000;
/** A task whose process is lost runs again: someone may have killed one of many. A task that always ends it must not run forever. */
const TRIES = 3;

/** Characters. Shorter ones could be guessed by who has heard a proof. */
const SHORTEST_KEY = 32;

/** The Python package, beside dist/ and src/. */
const PACKAGE_FOLDER = fileURLToPath(new URL("../../trainer", import.meta.url));

export function createTrainer(config: Config, log: Log): Trainer {
  const common = { idleMs: IDLE_MS, cancelGraceMs: CANCEL_GRACE_MS };
  if (config.trainer === "onnx") {
    const entry = compiledEntry(import.meta.url, "../training/onnx/trainer-entry.ts");
    const limits = (task: LimitsTask) => ({ maxTrainedLength: longestSequence(task) });
    return new ProcessTrainer({
      ...common,
      start: () => new ForkedProcess(entry, childEnvironment(config.trainerEnv)),
      limits,
    });
  }
  const address = config.trainerAddress === null ? null : dialled(config.trainerAddress);
  const key = config.trainerKeyFile === null ? null : readKey(config.trainerKeyFile);
  if (address !== null && key === null && !isLoopback(address.host)) {
    throw new OperatorError(
      `--trainer-address ${address.host} can be reached from other machines: give --trainer-key-file, so that trainer and server can prove who they are`,
    );
  }
  const start = () =>
    new CommandProcess({
      command: config.trainerCommand,
      env: { ...pythonPath(), FLYWHEEL_TRAINER_DETERMINISTIC: config.trainerDeterministic ? "1" : "0" },
      startMs: START_MS,
      pingMs: PING_MS,
      passedOn: config.trainerEnv,
      ...(address && { address }),
      ...(key && { key }),
      onOutput: (text) => log.debug("trainer", { text: text.trimEnd() }),
    });
  return new ProcessTrainer({
    ...{ ...common, start, stallMs: config.trainerStallTimeout * 1000, tries: TRIES },
    onLost: ({ message, cause }) => log.warn("the trainer was lost; its task starts again", { error: message, cause }),
  });
}

/** HOST or HOST:PORT. */
function dialled(text: string): { host: string; port: number } {
  const [, host, port] = /^(.+?)(?::(\d{1,5}))?$/.exec(text) ?? [];
  if (host === undefined || host.includes(":") || Number(port ?? 0) > 65_535) {
    throw new OperatorError(`--trainer-address ${text} is not HOST or HOST:PORT`);
  }
  return { host, port: Number(port ?? 0) };
}

/** The trainer's side reads it in the same way. */
function readKey(file: string): { file: string; text: string } {
  let text: string;
  try {
    text = readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new OperatorError(`--trainer-key-file: ${(error as Error).message}`, { cause: error });
  }
  if (text.length < SHORTEST_KEY) {
    throw new OperatorError(
      `--trainer-key-file ${file} has fewer than ${SHORTEST_KEY} characters: openssl rand -hex 32`,
    );
  }
  return { file: resolve(file), text };
}

/** The variable that lets Python find the trainer's package. */
export function pythonPath(): { PYTHONPATH: string } {
  return { PYTHONPATH: [PACKAGE_FOLDER, process.env.PYTHONPATH].filter(Boolean).join(":") };
}

/** What a base model is trained as. Throws OperatorError for options that do not fit. */
export function trainedWeights(
  { trainer, trainerDtype }: Config,
  { folder, weightType }: ServedCheckpoint,
): TrainedWeights {
  if (trainer === "onnx") return weightType;
  if (isGguf(folder)) {
    throw new OperatorError("--trainer torch cannot read GGUF files: give the model's folder, or --trainer onnx");
  }
  if (weightType !== "float32") {
    throw new OperatorError(
      `--trainer torch trains unrounded weights, and this server samples from ${weightType} ones: add --dtype float32`,
    );
  }
  return trainerDtype;
}

/** What PyTorch computes with to sample: weights, cache and products. */
export function torchDtype({ device, dtype }: Pick<Config, "device" | "dtype">): "bfloat16" | "float32" {
  return device === "cuda" && dtype === "auto" ? "bfloat16" : "float32";
}

/** Whether the engine of this server samples from other weights than the torch trainer trains: float32 against bfloat16. */
export function roundsOtherwise(config: Config): boolean {
  const { trainer, trainerDtype, engineUrl } = config;
  return trainer === "torch" && engineUrl.length === 0 && trainerDtype !== torchDtype(config);
}
