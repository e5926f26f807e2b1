// Checks the torch trainer before the first job does: the weights that are served, the command and its Python, and what
// that Python tells. In the end it starts the trainer as the server would.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import { basename } from "node:path";
import { promisify } from "node:util";
import { DEFAULT_WEIGHT_TYPE } from "../../app/embedded-engine.ts";
import { createTrainer, pythonPath, roundsOtherwise, torchDtype, trainedWeights } from "../../app/trainer.ts";
import type { Config } from "../../config/options.ts";
import { OperatorError } from "../../errors/faults.ts";
import { createLog } from "../../observe/log.ts";
import { childEnvironment } from "../../system/child-process.ts";
import { bytesText, countText, isOlder } from "../../system/text.ts";
import { type Finding, ok, warning, wrong } from "./finding.ts";

// Reads a trainer command as the shell would, as far as the doctor needs it: the program that it starts, and the Python
// behind that program.

interface TrainerCommand {
  /** Variables that the command sets before the program, such as CUDA_VISIBLE_DEVICES=0. */
  env: Record<string, string>;
  program: string;
  /** null when it is not on the PATH. */
  path: string | null;
  /** The Python that runs the program. null for a launcher that is not a Python program. */
  python: string | null;
}

/** A word of the shell, which may have quoted parts. */
const WORD = /(?:"[^"]*"|'[^']*'|[^\s"'])+/g;
const ASSIGNMENT = /^(\w+)=(.*)$/s;
/** The first line of a script: a Python, perhaps found by env. */
const SHEBANG = /^#!\s*(?:\/usr\/bin\/env\s+)?(\S*python[\d.]*)\s/;
/** Paths that are too long for a first line stand in the second, as pip writes them. */
const LONG_SHEBANG = /^#!.*\n'''exec' "?([^"\s]+)/;

export async function readCommand(command: string): Promise<TrainerCommand> {
  const words = (command.match(WORD) ?? []).map((word) => word.replaceAll(/["']/g, ""));
  const env: Record<string, string> = {};
  while (words[0] === "env" || ASSIGNMENT.test(words[0] ?? "")) {
    const [, name, value] = ASSIGNMENT.exec(words.shift()!) ?? [];
    if (name !== undefined) env[name] = value!;
  }
  const program = words[0] ?? "";
  const path = await pathOf(program, env);
  return { env, program, path, python: path === null ? null : pythonOf(path) };
}

async function pathOf(program: string, env: Record<string, string>): Promise<string | null> {
  try {
    const options = { env: childEnvironment([], env) };
    const { stdout } = await promisify(execFile)("sh", ["-c", 'command -v -- "$0"', program], options);
    return stdout.trim() || null;
  } catch {
    // the shell's way to say that there is none
    return null;
  }
}

/** A Python, or the one that a script such as torchrun names. */
function pythonOf(path: string): string | null {
  if (/^python[\d.]*$/.test(basename(path))) return path;
  const start = readFileSync(path).subarray(0, 1000).toString();
  return (SHEBANG.exec(start) ?? LONG_SHEBANG.exec(start))?.[1] ?? null;
}

// Asks the Python that will train what it can do. The answer comes from trainer/flywheel_trainer/check.py, run in that
// environment, so it is what the first job would find.

/** What check.py prints. */
export interface TrainerFacts {
  python: string;
  executable: string;
  packages: Record<"torch" | "transformers" | "safetensors", { version: string | null; error: string | null }>;
  devices: { name: string; freeBytes: number; totalBytes: number }[];
  /** null when the packages cannot be used. */
  model: ({ error: null } & ModelNeeds) | { error: string } | null;
}

interface ModelNeeds {
  type: string;
  parameters: number;
  weightBytes: number;
  /** Factors, gradient and optimizer. */
  adapterBytes: number;
  /** Activations of one token when layers are computed again. */
  rowBytes: number;
  /** Share of the free memory that activations may take. */
  memoryShare: number;
  positions: number;
}

export interface PythonProgram {
  python: string;
  /** All of its environment. */
  env: Record<string, string>;
}

/** PyTorch takes its time to import. */
const LONGEST_MS = 300_000;

/** `folder`: the checkpoint. Throws an Error whose message is the last line that Python wrote. */
async function askPython(program: PythonProgram, folder: string, config: Config): Promise<TrainerFacts> {
  const asked = ["--model", folder, "--dtype", config.trainerDtype, "--rank", String(config.loraRank)];
  const out = await output(program, ["-m", "flywheel_trainer.check", ...asked]);
  // libraries may print before it
  return JSON.parse(out.trimEnd().split("\n").at(-1)!) as TrainerFacts;
}

/** For example "3.11.7". Throws as above. */
async function pythonVersion(program: PythonProgram): Promise<string> {
  return (await output(program, ["--version"])).trim().replace(/^Python /, "");
}

async function output({ python, env }: PythonProgram, args: string[]): Promise<string> {
  const options = { env, timeout: LONGEST_MS, maxBuffer: 2 ** 26 };
  try {
    return (await promisify(execFile)(python, args, options)).stdout;
  } catch (error) {
    const { stderr = "", message } = error as Error & { stderr?: string };
    throw new Error(stderr.trim().split("\n").at(-1) || message, { cause: error });
  }
}

// Judges what the trainer's Python told: its packages, the GPUs, the model, and the memory for it.

/** The oldest versions that the trainer runs with. */
const PACKAGES = { torch: "2.6", transformers: "5.0", safetensors: "0.4" } as const;

function* checkFacts(facts: TrainerFacts, config: Config): Generator<Finding> {
  for (const name of Object.keys(PACKAGES) as (keyof typeof PACKAGES)[]) yield packageFinding(name, facts);
  if (facts.packages.torch.error !== null) return;
  yield gpuFinding(facts, config);
  if (facts.model === null) return;
  if (facts.model.error !== null) {
    const advice = "Use a Llama, Mistral, Qwen 2, Qwen 3 or Gemma 3 (text) checkpoint that is not quantized.";
    yield wrong("trained-model", facts.model.error, advice);
    return;
  }
  yield ok("trained-model", `${facts.model.type}, ${countText(facts.model.parameters)} parameters`);
  yield memoryFinding(facts.model, facts.devices, config);
}

function packageFinding(name: keyof typeof PACKAGES, facts: TrainerFacts): Finding {
  const { version, error } = facts.packages[name];
  const oldest = PACKAGES[name];
  const install = `${facts.executable} -m pip install "${name}>=${oldest}"`;
  if (version === null) return wrong(name, `cannot be imported: ${error}`, `Install it: ${install}`);
  if (isOlder(version, oldest)) return wrong(name, `${version} is too old`, `Update it: ${install}`);
  return ok(name, version);
}

function gpuFinding({ devices, packages }: TrainerFacts, { trainerCommand }: Config): Finding {
  if (devices.length > 0) {
    const shown = devices.map(
      ({ name, freeBytes, totalBytes }) => `${name}, ${bytesText(freeBytes)} of ${bytesText(totalBytes)} free`,
    );
    return ok("gpu", shown.join("; "));
  }
  const fix = packages.torch.version!.includes("+cpu") ? "Install a torch with CUDA" : "Install the GPU's driver";
  if (/--nproc[-_]per[-_]node[= ]gpu\b/.test(trainerCommand)) {
    const advice = `${fix}, or give --trainer-command with --nproc-per-node=1 to train on the processor.`;
    return wrong("gpu", "no GPU, and --nproc-per-node=gpu needs one", advice);
  }
  return warning("gpu", "no GPU: it trains on the processor", `${fix}. --trainer onnx is made for processors.`);
}

/** Weights, adapter with optimizer, and the activations of one sequence, on the GPU with the least memory. */
function memoryFinding(needs: ModelNeeds, devices: TrainerFacts["devices"], config: Config): Finding {
  const onGpu = devices.length > 0;
  const free = onGpu ? Math.min(...devices.map(({ freeBytes }) => freeBytes)) : totalmem();
  const fixed = needs.weightBytes + needs.adapterBytes;
  const activations = onGpu ? (free - fixed) * needs.memoryShare : config.trainingMemoryBytes;
  const longest = Math.floor(activations / needs.rowBytes);
  const parts = `${bytesText(needs.weightBytes)} of weights, ${bytesText(needs.adapterBytes)} of adapter and optimizer`;
  const advice = "Use a smaller model or more memory, or end other programs that use it, such as an engine.";
  if (fixed > free || longest < 1) return wrong("memory", `${parts} do not fit ${bytesText(free)}`, advice);
  const served = config.maxModelLen ?? needs.positions;
  const detail = `${parts}, ${bytesText(needs.rowBytes)} per token of a sequence`;
  if (longest >= served) return ok("memory", `${detail}; ${served} tokens fit`);
  const more = onGpu ? advice : "Raise --training-memory-bytes.";
  return warning("memory", `${detail}; ${longest} of ${served} tokens fit`, `Longer sequences are left out. ${more}`);
}

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
    yield* checkFacts(await askPython(program, folder, config), config);
  } catch (error) {
    yield wrong("python", `${program.python} fails: ${(error as Error).message}`, INSTALL);
  }
}

/** The server's own rule, in its own words. */
function weightsFinding(config: Config): Finding {
  const isRemote = config.engineUrl.length > 0;
  const weightType =
    config.dtype === "auto" ? (isRemote || config.device !== "cpu" ? "float32" : DEFAULT_WEIGHT_TYPE) : config.dtype;
  try {
    trainedWeights(config, { folder: "", weightType });
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    return wrong("weights", `the engine serves ${weightType}, the trainer ${config.trainerDtype}`, error.message);
  }
  if (roundsOtherwise(config)) {
    const served = torchDtype(config);
    const advice = `Give --trainer-dtype ${served}, so that sampler and trainer compute the same numbers.`;
    return warning("weights", `the engine serves ${served}, the trainer ${config.trainerDtype}`, advice);
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
