// Whether this machine has what a server needs.
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { fits, memoryPlan } from "../../app/memory-plan.ts";
import { findModel, hubEnvironment } from "../../app/model-files.ts";
import { usableCores } from "../../app/usable-cores.ts";
import type { Config } from "../../config/options.ts";
import { OperatorError } from "../../errors/faults.ts";
import { cachedModel } from "../../model/hub/cached-models.ts";
import { hubCacheFolder } from "../../model/hub/hub-cache.ts";
import { kernelsHere, runtimeVersion } from "../../model/runtime-version.ts";
import { createLog } from "../../observe/log.ts";
import { freeBytes } from "../../system/files.ts";
import { PACKAGE_VERSION } from "../../system/package.ts";
import { bytesText, isOlder } from "../../system/text.ts";
import { contextText, memoryText } from "../base-models/plan-lines.ts";
import { type Finding, ok, warning, wrong } from "./finding.ts";
import { checkGpu } from "./gpu.check.ts";
import { checkServer } from "./server.check.ts";

// Checks of what a server takes from its machine: room on the disk, and cores. `flywheel status` shows the same findings.

const LITTLE_DISK = 2e9;

export function checkDisk(check: string, folder: string, what: string): Finding {
  const free = freeBytes(existing(folder));
  const seen = `${bytesText(free)} free for ${what} in ${folder}`;
  return free < LITTLE_DISK ? warning(check, seen, "Free some space, or choose another folder.") : ok(check, seen);
}

/** `threads`: null = as many as there are cores. */
export function checkThreads(threads: number | null): Finding {
  const cores = usableCores();
  if (threads === null || threads <= cores) return ok("threads", `${threads ?? cores} of ${cores} usable cores`);
  return warning("threads", `--threads ${threads} is more than the ${cores} usable cores`, `--threads ${cores}`);
}

/** The folder, or the nearest one above it that exists. */
function existing(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : existing(dirname(folder));
}

// Checks of this machine: versions, the data directory, disk, server, model, memory and threads. Reads only; makes and
// downloads nothing.

const LEAST_NODE = "20.19";
/** Where ONNX Runtime and SQLite have libraries. */
const PLATFORMS = ["linux/x64", "linux/arm64", "darwin/arm64", "win32/x64"];

export async function* checkMachine(config: Config): AsyncGenerator<Finding> {
  yield checkNode();
  yield await checkRuntime();
  yield await checkKernels();
  yield checkData(config.data);
  yield checkDisk("disk-data", config.data, "trained steps");
  yield checkDisk("disk-models", hubCacheFolder(hubEnvironment(config)), "downloaded models");
  yield* checkServer(config);
  yield* checkModel(config);
  yield checkThreads(config.threads);
}

function checkNode(): Finding {
  const platform = `${process.platform}/${process.arch}`;
  const seen = `Flywheel ${PACKAGE_VERSION}, Node ${process.versions.node}, ${platform}`;
  if (isOlder(process.versions.node, LEAST_NODE)) {
    return wrong("versions", seen, `Install Node ${LEAST_NODE} or newer.`);
  }
  if (!PLATFORMS.includes(platform)) return wrong("versions", seen, `Use one of ${PLATFORMS.join(", ")}.`);
  return ok("versions", seen);
}

async function checkRuntime(): Promise<Finding> {
  try {
    return ok("runtime", `ONNX Runtime ${await runtimeVersion()} loads`);
  } catch (error) {
    const reason = (error as Error).message.split("\n")[0]!;
    return wrong(
      "runtime",
      `ONNX Runtime does not load: ${reason}`,
      "Install again; on Linux, use one with glibc, not musl.",
    );
  }
}

async function checkKernels(): Promise<Finding> {
  const { kernels, detail } = await kernelsHere();
  if (kernels === "native") return ok("kernels", `native: Flywheel's own operations run (${detail})`);
  const seen = `graph: the model runs on ONNX Runtime's operations only, which is slower: ${detail.split("\n")[0]}`;
  return warning("kernels", seen, "See docs/reference/installation.md#native-kernels.");
}

function checkData(data: string): Finding {
  if (!existsSync(data)) {
    const parent = existing(data);
    if (isWritable(parent)) return ok("data", `${data} will be made by the first start`);
    return wrong("data", `${data} cannot be made: ${parent} is not writable`, "Choose another --data.");
  }
  if (!isWritable(data)) return wrong("data", `${data} is not writable`, "Change its owner, or choose another --data.");
  const mode = statSync(data).mode & 0o777;
  if (process.platform !== "win32" && (mode & 0o077) !== 0) {
    const shown = mode.toString(8).padStart(4, "0");
    return warning("data", `other users can look into ${data} (mode ${shown})`, `chmod 700 ${data}`);
  }
  return ok("data", data);
}

async function* checkModel(config: Config): AsyncGenerator<Finding> {
  const isOnHub = /^[\w.-]+\/[\w.-]+(@[\w./-]+)?$/.test(config.model) && !existsSync(config.model);
  try {
    const cached = isOnHub ? cachedModel(config.model.split("@")[0]!, hubEnvironment(config)) : null;
    if (isOnHub && (cached === null || cached.missing.length > 0)) {
      const state = cached === null ? "is not on this machine" : `is incomplete, without ${cached.missing[0]}`;
      yield warning("model", `${config.model} ${state}`, `flywheel pull ${config.model}`);
      return;
    }
    const { folder } =
      cached === null
        ? await findModel(config, createLog({ level: "warn", format: "text" }))
        : { folder: cached.snapshot };
    const plan = await memoryPlan(folder, config);
    yield ok("model", `${config.model} (${plan.family}) in ${folder}`);
    if (config.device !== "cpu") {
      yield* checkGpu(config, plan.parameters);
      return;
    }
    yield ok("context", contextText(plan));
    const seen = memoryText(plan);
    yield fits(plan) ? ok("memory", seen) : warning("memory", seen, "See `flywheel serve --estimate`.");
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    yield wrong("model", error.message, modelAdvice(error));
  }
}

function modelAdvice({ message }: OperatorError): string {
  const option = /^--[a-z-]+/.exec(message)?.[0];
  return option === undefined || option === "--model"
    ? "Give another --model, or leave it out for the bundled one."
    : `Give another ${option}, or leave it out.`;
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
