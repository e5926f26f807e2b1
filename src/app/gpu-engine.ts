// The engine on one GPU (`--device cuda`): a Python process of ours owns the GPU, and an engine thread drives it. Turns
// the operator's settings into what both need, and says what this machine lacks.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Config } from "../config/options.ts";
import type { Engine } from "../engine/contract.ts";
import { FleetEngine, type FleetOptions } from "../engine/fleet/fleet-engine.ts";
import { LocalReplica, replicaAlias } from "../engine/fleet/replica.ts";
import type { GpuProcessOptions } from "../engine/gpu/gpu-process.ts";
import { WorkerEngine } from "../engine/thread/worker-host.ts";
import { OperatorError } from "../errors/faults.ts";
import type { TokenVocabulary } from "../grammar/match/token-vocabulary.ts";
import { checkpointIdentity } from "../model/checkpoint/checkpoint.ts";
import type { ModelConfig } from "../model/checkpoint/model-config.ts";
import { undescribable } from "../model/describe.ts";
import { childEnvironment } from "../system/child-process.ts";
import { compiledEntry } from "../system/package.ts";
import { isOlder } from "../system/text.ts";
import { kvCacheBytes, usualContext } from "./embedded-engine.ts";
import { type GpuHostOptions, PAGE_TOKENS } from "./gpu-host.ts";
import { pythonPath, torchDtype } from "./trainer.ts";
import { usableCores } from "./usable-cores.ts";

// What the machine has.

/** What trainer/flywheel_gpu/check.py prints. */
export interface GpuFacts {
  python: string;
  executable: string;
  platform: string;
  /** `error`: why it cannot be imported. */
  packages: Record<"torch" | "triton", { version: string | null; error: string | null }>;
  /** Paths; null = not found. Triton compiles a little C, once. */
  compiler: string | null;
  headers: string | null;
  /** Where triton keeps what it compiled, and whether that can be written. */
  kernelCache: { folder: string; writable: boolean };
  /** The newest CUDA that the driver knows, such as "12.8"; null = no driver. */
  driver: string | null;
  devices: { name: string; capability: [number, number]; totalBytes: number; freeBytes: number }[];
}

/** Something that the engine needs and this machine does not have. */
export interface Lack {
  /** Which check it fails. */
  check: string;
  detail: string;
  advice: string;
}

const LEAST_PYTHON = "3.11";
const LEAST_TORCH = "2.11";
/** Older cards lack bfloat16 products. */
const LEAST_CAPABILITY = 8;
const LONGEST_MS = 300_000;

/** Throws OperatorError when there is no such Python, or it cannot run the check. */
export async function askPython(python: string): Promise<GpuFacts> {
  const options = { env: childEnvironment([], pythonPath()), timeout: LONGEST_MS };
  try {
    const { stdout } = await promisify(execFile)(python, ["-m", "flywheel_gpu.check"], options);
    // libraries may print before it
    return JSON.parse(stdout.trimEnd().split("\n").at(-1)!) as GpuFacts;
  } catch (error) {
    const { stderr = "", message, code } = error as Error & { stderr?: string; code?: unknown };
    const advice = `Install Python ${LEAST_PYTHON} or newer (apt-get install python3), or name one with --python.`;
    const why = code === "ENOENT" ? "there is no such program" : stderr.trim().split("\n").at(-1) || message;
    throw new OperatorError(`--python ${python}: ${why}. ${advice}`, { cause: error });
  }
}

/** What is missing, in the order in which to mend it. `onGpu`: false for the process without a GPU. */
export function lacksOf(facts: GpuFacts, onGpu: boolean): Lack[] {
  const { python, executable, platform, packages, compiler, headers, kernelCache, driver, devices } = facts;
  const lacks: Lack[] = [];
  const lack = (check: string, detail: string, advice: string) => lacks.push({ check, detail, advice });
  const pip = `${executable} -m pip install "torch>=${LEAST_TORCH}"`;
  if (platform !== "linux") lack("platform", `${platform} is not Linux`, "Run the server on Linux.");
  if (isOlder(python, LEAST_PYTHON)) {
    const install = `apt-get install python${LEAST_PYTHON} python${LEAST_PYTHON}-dev`;
    lack("python", `${python} at ${executable} is too old`, `${install}, then --python python${LEAST_PYTHON}`);
  }
  const { torch, triton } = packages;
  if (torch.version === null) lack("torch", `cannot be imported: ${torch.error}`, pip);
  else if (isOlder(torch.version, LEAST_TORCH)) lack("torch", `${torch.version} is too old`, pip);
  if (!onGpu) return lacks;
  if (triton.version === null) {
    lack("triton", `cannot be imported: ${triton.error}`, `${pip}: a torch with CUDA brings its triton`);
  }
  if (compiler === null) lack("compiler", "no C compiler (triton needs one once)", "apt-get install gcc");
  if (headers === null) {
    const minor = python.split(".").slice(0, 2).join(".");
    lack("headers", "no headers of Python (triton needs them once)", `apt-get install python${minor}-dev`);
  }
  if (!kernelCache.writable) {
    const advice = "Give TRITON_CACHE_DIR a folder that can be written.";
    lack("kernel-cache", `${kernelCache.folder} cannot be written`, advice);
  }
  if (torch.version?.includes("+cpu")) lack("torch", `${torch.version} is built without CUDA`, pip);
  else if (driver === null) lack("driver", "no NVIDIA driver", "apt-get install nvidia-driver, or pass the GPU on");
  const [device] = devices;
  if (driver !== null && device === undefined) {
    lack("gpu", "the driver shows no GPU", "nvidia-smi says why; CUDA_VISIBLE_DEVICES may hide it");
  } else if (device !== undefined && device.capability[0] < LEAST_CAPABILITY) {
    const capability = device.capability.join(".");
    const advice = `Use a GPU of compute capability ${LEAST_CAPABILITY}.0 or newer, or --device cpu.`;
    lack("gpu", `${device.name} has compute capability ${capability}`, advice);
  }
  return lacks;
}

// The engine.

export interface GpuEngineParts {
  /** A checkpoint folder. */
  folder: string;
  model: ModelConfig;
  /** null = no grammars. */
  vocabulary: TokenVocabulary | null;
  fleet: Omit<FleetOptions, "prefixCaching">;
  /** In place of Python, for tests. */
  process?: GpuProcessOptions;
}

/** Fast to run again first; then the GPU itself may be gone for a while. */
const PAUSES_MS = [1_000, 5_000, 25_000];
const LATER_MS = 30_000;
/** Tokens of a step with a prompt. On a processor, long steps would hold up streams. */
const STEP_TOKENS = { cuda: 8192, cpu: 512 };

/** Resolves when the model is on the GPU. Throws OperatorError for settings, models and machines that cannot work. */
export async function createGpuEngine(config: Config, parts: GpuEngineParts): Promise<Engine> {
  const { folder, fleet } = parts;
  checkOptions(config, folder, parts.model);
  const { maxNumSeqs, maxModelLen, enablePrefixCaching } = config;
  const maxNumBatchedTokens = config.maxNumBatchedTokens ?? STEP_TOKENS[deviceOf(config)];
  const host = hostOptions(config, parts);
  const engine = await WorkerEngine.start({
    model: () => ({ module: compiledEntry(import.meta.url, "./gpu-host.ts").href, options: host }),
    scheduling: {
      ...{ maxNumSeqs, maxNumBatchedTokens, linkSize: PAGE_TOKENS },
      ...{ policy: config.schedulingPolicy, prefixCaching: enablePrefixCaching },
    },
    onFault: fleet.onFault,
    ...{ pausesMs: PAUSES_MS, laterMs: LATER_MS },
  }).catch(async (error: Error) => {
    throw await startFault(error, config);
  });
  const { info } = engine;
  if (maxModelLen !== null && info.maxModelLen < maxModelLen) {
    await engine.close();
    throw new OperatorError(
      `--max-model-len ${maxModelLen} does not fit the KV cache (${info.cacheTokens} tokens): lower it, or give more memory`,
    );
  }
  // One replica: requests that a restart has interrupted go on or start over by the rules of a fleet.
  const replica = new LocalReplica(replicaAlias(0), engine, maxNumSeqs);
  return FleetEngine.start([replica], { ...fleet, prefixCaching: enablePrefixCaching });
}

function deviceOf({ device }: Config): "cuda" | "cpu" {
  return device === "cuda" ? "cuda" : "cpu";
}

function hostOptions(config: Config, parts: GpuEngineParts): GpuHostOptions {
  const { folder, model, vocabulary } = parts;
  const { kvCacheMemoryBytes, gpuMemory, maxModelLen, enableLora, maxLoraRank } = config;
  const device = deviceOf(config);
  // Without a GPU, memory is the machine's, as for the embedded engine.
  const ofMachine = kvCacheBytes(kvCacheMemoryBytes === null ? {} : { kvCacheBytes: kvCacheMemoryBytes });
  return {
    ...{ folder, identity: checkpointIdentity(folder), vocabulary, device, dtype: torchDtype(config), maxLoraRank },
    process: parts.process ?? pythonProcess(config),
    memory: { gpuBytes: gpuMemory, kvBytes: device === "cuda" ? kvCacheMemoryBytes : ofMachine },
    maxPositions: maxModelLen ?? usualContext(model),
    maxLoras: enableLora ? config.maxLoras : 0,
  };
}

function pythonProcess({ python, threads }: Config): GpuProcessOptions {
  const env = { ...pythonPath(), OMP_NUM_THREADS: String(threads ?? usableCores()) };
  return { command: [python, "-m", "flywheel_gpu"], env };
}

const OTHER_WAYS = "Serve it without --device, or with vLLM (--engine-url).";

function checkOptions(config: Config, folder: string, model: ModelConfig): void {
  const { device, dtype, dataParallelSize, blockSize, maxModelLen } = config;
  if (dtype === "int8" || dtype === "int4") {
    throw new OperatorError(`--dtype ${dtype} is for --device cpu: leave it out with --device ${device}`);
  }
  if (dataParallelSize !== 1) {
    throw new OperatorError(`--data-parallel-size is for --device cpu: leave it out with --device ${device}`);
  }
  if (blockSize !== 16 && blockSize !== PAGE_TOKENS) {
    throw new OperatorError(`--block-size is ${PAGE_TOKENS} with --device ${device}: leave it out`);
  }
  if (maxModelLen !== null && maxModelLen > model.maxPositions) {
    throw new OperatorError(`--max-model-len ${maxModelLen} is more than the model's ${model.maxPositions} positions`);
  }
  const problem = undescribable({ path: folder, config: model });
  if (problem !== null) throw new OperatorError(`--device ${device} ${problem}. ${OTHER_WAYS}`);
}

/** Why the engine did not start: what the machine lacks, or what the process said. */
async function startFault({ message, cause }: Error, { python, device }: Config): Promise<Error> {
  const inner = cause instanceof Error ? cause : null;
  if (inner?.name === "OperatorError" && !/cannot be started/.test(inner.message)) {
    return new OperatorError(inner.message, { cause });
  }
  const [lack] = lacksOf(await askPython(python), device === "cuda");
  if (lack !== undefined) return new OperatorError(`--device ${device}: ${lack.check}: ${lack.detail}. ${lack.advice}`);
  const words = typeof inner?.cause === "string" ? inner.cause.split("\n").at(-1) : message;
  return new OperatorError(`--device ${device}: the engine did not start: ${words}`, { cause });
}
