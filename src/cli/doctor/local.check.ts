// Checks of this machine: versions, the data directory, disk, port, key, model, memory and threads. Reads only; makes and
// downloads nothing.

import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { fits, memoryPlan } from "../../app/memory-plan.ts";
import { findModel } from "../../app/model-files.ts";
import { usableCores } from "../../app/usable-cores.ts";
import type { Config } from "../../config/options.ts";
import { OperatorError } from "../../errors/operator-error.ts";
import { CheckpointError } from "../../model/checkpoint/checkpoint-error.ts";
import { cachedModel } from "../../model/hub/cached-models.ts";
import { hubCacheFolder } from "../../model/hub/hub-cache.ts";
import { runtimeVersion } from "../../model/runtime-version.ts";
import { createLog } from "../../observe/log.ts";
import { type LocalKey, readLocalKey } from "../../store/local-key.ts";
import { bytesText } from "../../system/number-text.ts";
import { PACKAGE_VERSION } from "../../system/version.ts";
import { answeringVersion } from "../answering-server.ts";
import { planLines } from "../base-models/plan-lines.ts";
import { type Finding, ok, warning, wrong } from "./finding.ts";

const LEAST_NODE = [20, 19] as const;
/** Where ONNX Runtime and SQLite have libraries. */
const PLATFORMS = ["linux/x64", "linux/arm64", "darwin/arm64", "win32/x64"];
const LITTLE_DISK = 2e9;

export async function* checkMachine(config: Config): AsyncGenerator<Finding> {
  yield checkNode();
  yield await checkRuntime();
  yield checkData(config.data);
  yield checkDisk("disk-data", config.data, "trained steps");
  yield checkDisk("disk-models", hubCacheFolder(environmentOf(config)), "downloaded models");
  let key: LocalKey | null = null;
  try {
    key = readLocalKey(config.data);
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    yield wrong("key", error.message, "Fix the file, or give commands --api-key.");
  }
  yield* checkServer(config, key);
  yield* checkModel(config);
  yield checkThreads(config);
}

function checkNode(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const platform = `${process.platform}/${process.arch}`;
  const seen = `Flywheel ${PACKAGE_VERSION}, Node ${process.versions.node}, ${platform}`;
  if (major < LEAST_NODE[0] || (major === LEAST_NODE[0] && minor < LEAST_NODE[1])) {
    return wrong("versions", seen, `Install Node ${LEAST_NODE.join(".")} or newer.`);
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

function checkDisk(check: string, folder: string, what: string): Finding {
  const { bavail, bsize } = statfsSync(existing(folder));
  const free = bavail * bsize;
  const seen = `${bytesText(free)} free for ${what} in ${folder}`;
  return free < LITTLE_DISK ? warning(check, seen, "Free some space, or choose another folder.") : ok(check, seen);
}

async function* checkServer(config: Config, key: LocalKey | null): AsyncGenerator<Finding> {
  const version = key === null ? null : await answeringVersion(key.url);
  if (key !== null && version !== null) {
    yield version === PACKAGE_VERSION
      ? ok("server", `Flywheel ${version} answers at ${key.url}`)
      : warning("server", `Flywheel ${version} answers at ${key.url}, not ${PACKAGE_VERSION}`, "Start it again.");
    yield await checkKey(key);
    return;
  }
  const place = `${config.host}:${config.port}`;
  if (config.port !== 0 && (await isTaken(config.host, config.port))) {
    yield warning("port", `another program listens on ${place}`, "Give serve another --port, or 0 for a free one.");
  } else {
    yield ok("port", `${place} is free; no server runs on ${config.data}`);
  }
  if (key !== null) {
    yield warning(
      "key",
      `a server ended without taking its key away: ${key.url} does not answer`,
      "The next start replaces it.",
    );
  }
}

/** Whether the server takes the key that it wrote. */
async function checkKey({ url, token }: LocalKey): Promise<Finding> {
  const response = await fetch(`${url}/v1/me`, { headers: { authorization: `Bearer ${token}` } });
  if (response.ok) return ok("key", "commands on this machine need no token");
  return wrong(
    "key",
    `the server refuses its own key (${response.status})`,
    "Start the server again, or give --api-key.",
  );
}

async function* checkModel(config: Config): AsyncGenerator<Finding> {
  const isOnHub = /^[\w.-]+\/[\w.-]+(@[\w./-]+)?$/.test(config.model) && !existsSync(config.model);
  const cached = isOnHub ? cachedModel(config.model.split("@")[0]!, environmentOf(config)) : null;
  if (isOnHub && (cached === null || cached.missing.length > 0)) {
    const state = cached === null ? "is not on this machine" : `is incomplete, without ${cached.missing[0]}`;
    yield warning("model", `${config.model} ${state}`, `flywheel pull ${config.model}`);
    return;
  }
  try {
    const { folder } =
      cached === null
        ? await findModel(config, createLog({ level: "warn", format: "text" }))
        : { folder: cached.snapshot };
    const plan = memoryPlan(folder, config);
    yield ok("model", `${config.model} (${plan.family}) in ${folder}`);
    const seen = planLines(plan)
      .at(-1)!
      .replace(/^memory +/, "");
    yield fits(plan) ? ok("memory", seen) : warning("memory", seen, "See `flywheel serve --estimate`.");
  } catch (error) {
    if (!(error instanceof OperatorError || error instanceof CheckpointError)) throw error;
    yield wrong("model", error.message, "Give another --model, or leave it out for the bundled one.");
  }
}

function checkThreads({ threads }: Config): Finding {
  const cores = usableCores();
  if (threads === null || threads <= cores) return ok("threads", `${threads ?? cores} of ${cores} usable cores`);
  return warning("threads", `--threads ${threads} is more than the ${cores} usable cores`, `--threads ${cores}`);
}

function environmentOf({ downloadDir }: Config): NodeJS.ProcessEnv {
  return downloadDir === null ? process.env : { ...process.env, HF_HUB_CACHE: downloadDir };
}

/** The folder, or the nearest one above it that exists. */
function existing(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : existing(dirname(join(folder)));
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function isTaken(host: string, port: number): Promise<boolean> {
  const here = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return new Promise((resolve) => {
    const socket = connect({ host: here, port });
    const settle = (taken: boolean) => {
      socket.destroy();
      resolve(taken);
    };
    socket
      .setTimeout(2000, () => settle(false))
      .on("connect", () => settle(true))
      .on("error", () => settle(false));
  });
}
