// Checks the torch trainer before the first job does: the weights that are served, the command and its Python, and what
// that Python tells (trainer-facts.check.ts). In the end it starts the trainer as the server would.

import { DEFAULT_WEIGHT_TYPE } from "../../app/embedded-engine.ts";
import { createTrainer, pythonPath, roundsOtherwise, trainedWeights } from "../../app/trainer.ts";
import type { Config } from "../../config/options.ts";
import { OperatorError } from "../../errors/faults.ts";
import { createLog } from "../../observe/log.ts";
import { childEnvironment } from "../../system/child-environment.ts";
import { type Finding, ok, warning, wrong } from "./finding.ts";
import { readCommand, type TrainerCommand } from "./trainer-command.ts";
import { checkFacts, isOlder } from "./trainer-facts.check.ts";
import { askPython, pythonVersion } from "./trainer-facts.ts";

const OLDEST_PYTHON = "3.11";
const INSTALL = `Install Python ${OLDEST_PYTHON} or newer with torch, transformers and safetensors.`;

/** `folder`: the checkpoint. */
export async function* checkTrainer(config: Config, folder: string): AsyncGenerator<Finding> {
  let isFit = true;
  for await (const finding of checkEnvironment(config, folder)) {
    yield finding;
    isFit &&= finding.status !== "wrong";
  }
  if (isFit) yield await launch(config, folder);
}

async function* checkEnvironment(config: Config, folder: string): AsyncGenerator<Finding> {
  yield weightsFinding(config);
  const command = await readCommand(config.trainerCommand);
  yield commandFinding(command);
  if (command.path !== null && command.python === null) return;
  // without the command, the usual Python tells what else is missing
  const env = childEnvironment(config.trainerEnv, { ...pythonPath(), ...command.env });
  const program = { python: command.python ?? "python3", env };
  try {
    const version = await pythonVersion(program);
    if (isOlder(version, OLDEST_PYTHON)) {
      yield wrong("python", `${version} at ${program.python} is too old`, INSTALL);
      return;
    }
    yield ok("python", `${version} at ${program.python}`);
    const model = { folder, dtype: config.trainerDtype, rank: config.loraRank };
    yield* checkFacts(await askPython(program, model), config);
  } catch (error) {
    yield wrong("python", `${program.python} fails: ${(error as Error).message}`, INSTALL);
  }
}

/** The server's own rule, in its own words. */
function weightsFinding(config: Config): Finding {
  const isRemote = config.engineUrl.length > 0;
  const weightType = config.dtype === "auto" ? (isRemote ? "float32" : DEFAULT_WEIGHT_TYPE) : config.dtype;
  try {
    trainedWeights(config, { folder: "", weightType });
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    return wrong("weights", `the engine serves ${weightType}, the trainer ${config.trainerDtype}`, error.message);
  }
  if (roundsOtherwise(config)) {
    const advice = "Give --trainer-dtype float32, so that sampler and trainer compute the same numbers.";
    return warning("weights", `the engine serves float32, the trainer ${config.trainerDtype}`, advice);
  }
  return ok("weights", `the trainer computes with ${config.trainerDtype}`);
}

function commandFinding({ program, path, python }: TrainerCommand): Finding {
  if (path === null) {
    const advice = "Install PyTorch, or give --trainer-command a full path: /opt/venv/bin/torchrun …";
    return wrong("command", `${program} is not on the PATH`, advice);
  }
  return ok("command", python === null ? `${path}, a launcher of its own: only its start is checked` : path);
}

/** Starts the trainer and asks for its limits, as the first job does. */
async function launch(config: Config, folder: string): Promise<Finding> {
  const trainer = createTrainer(config, createLog({ level: "error", format: "text" }));
  const started = performance.now();
  try {
    const { maxTrainedLength } = await trainer.limits({
      baseModel: folder,
      weights: config.trainerDtype,
      positionsPerBlock: config.blockSize,
      activationBytes: config.trainingMemoryBytes,
      maxSequenceLength: config.maxModelLen ?? Number.MAX_SAFE_INTEGER,
      rank: config.loraRank,
    });
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    return ok("launch", `it started in ${seconds} s; its longest sequence has ${maxTrainedLength} tokens`);
  } catch (error) {
    const { message, cause } = error as Error;
    const last = String(cause ?? "")
      .split("\n")
      .at(-1);
    return wrong("launch", message, last ? `It wrote: ${last}` : "Run the command by hand.");
  } finally {
    await trainer.close();
  }
}
