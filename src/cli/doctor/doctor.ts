// Examines this machine, or replicas one after the other and the trainer, and prints what was found: a line for each
// check, or JSON.

import { resolve } from "node:path";
import { findModel, loadText } from "../../app/model-files.ts";
import { readEngineUrl } from "../../app/remote-engines.ts";
import type { Config } from "../../config/options.ts";
import { isJsonObject, type JsonObject } from "../../json/json.ts";
import { CheckpointError } from "../../model/checkpoint/checkpoint-file.ts";
import { readServedConfig } from "../../model/checkpoint/config-files.ts";
import { type ModelConfig, readModelConfig } from "../../model/checkpoint/model-config.ts";
import { createLog } from "../../observe/log.ts";
import { isOlder } from "../../system/text.ts";
import { checkAdapters } from "./adapters.check.ts";
import { checkAbort, checkStops } from "./ends.check.ts";
import { type Finding, findingLines, ok, type Status, warning, wrong } from "./finding.ts";
import { checkLaunchFlags, launchLine } from "./launch-flags.check.ts";
import { checkMachine } from "./machine.check.ts";
import { checkDeterminism, checkLogprobs } from "./numbers.check.ts";
import { Bench, errorText, type OurSide, Replica, ReplicaError, type ReplicaModel } from "./replica.ts";
import { checkText } from "./text.check.ts";
import { checkTrainer } from "./trainer.check.ts";

// Finds out what answers at a URL: whether it lives, speaks vLLM's dialect with token ids, and which model it serves.
// Without these facts no other check makes sense.

export interface Examined {
  findings: Finding[];
  /** null when the other checks cannot run. */
  served: ReplicaModel | null;
}

/** The first vLLM release whose dialect the remote engine speaks. */
const OLDEST_VLLM = "0.17";
const FOREIGN =
  "Flywheel sends token ids and needs token ids back. Point it at vLLM 0.17 or newer, or at another Flywheel server.";

/** `ours` is our context length. */
export async function identify(replica: Replica, ours: number): Promise<Examined> {
  const health = await replica.get("/health");
  if (health.status !== 200) {
    const advice = "Wait until the replica has loaded its model, and look at its log.";
    return { findings: [wrong("health", `/health answers ${health.status}`, advice)], served: null };
  }
  const findings: Finding[] = [];
  const models = await replica.get("/v1/models");
  if (models.status === 401 || models.status === 403) {
    const advice = "Give the replica's key with --engine-api-key.";
    return { findings: [wrong("api-key", `/v1/models answers ${models.status}`, advice)], served: null };
  }
  const served = baseModel(models.body);
  if (served === null) {
    return { findings: [wrong("models", `/v1/models lists no model: ${errorText(models.body)}`, FOREIGN)], served };
  }
  findings.push(await versionFinding(replica, served.isFlywheel), contextFinding(served, ours));
  const dialect = await dialectFinding(replica, served);
  findings.push(dialect);
  return { findings, served: dialect.status === "wrong" ? null : served };
}

/** The first model without a parent; adapters have one. */
function baseModel(body: unknown): ReplicaModel | null {
  const list = isJsonObject(body) && Array.isArray(body.data) ? body.data : [];
  const base = list.find((model): model is JsonObject => isJsonObject(model) && (model.parent ?? null) === null);
  if (base === undefined || typeof base.id !== "string") return null;
  const { id, max_model_len: length, owned_by: owner } = base;
  return { name: id, maxModelLen: typeof length === "number" ? length : 0, isFlywheel: owner === "flywheel" };
}

async function versionFinding(replica: Replica, isFlywheel: boolean): Promise<Finding> {
  const { body } = await replica.get("/version");
  const version = isJsonObject(body) && typeof body.version === "string" ? body.version : null;
  if (version === null) return warning("version", "/version tells no version", FOREIGN);
  if (isFlywheel) return ok("version", `Flywheel ${version}`);
  const [, number] = /^v?(\d+\.\d+)/.exec(version) ?? [];
  // Development builds of vLLM call themselves "dev".
  if (number === undefined) return warning("version", `vLLM ${version}`, "Use a released version: 0.17 or newer.");
  if (isOlder(number, OLDEST_VLLM)) {
    return wrong("version", `vLLM ${version}`, "Update vLLM: 0.17 is the oldest version that Flywheel speaks to.");
  }
  return ok("version", `vLLM ${version}`);
}

function contextFinding({ name, maxModelLen }: ReplicaModel, ours: number): Finding {
  const detail = `${name}, ${maxModelLen} tokens`;
  if (maxModelLen >= ours) return ok("model", detail);
  const advice = `Requests get the smaller length. The replica's --max-model-len ${ours} would allow all.`;
  return warning("model", `${detail}; the model allows ${ours}`, advice);
}

async function dialectFinding(replica: Replica, { name }: ReplicaModel): Promise<Finding> {
  const prompt = [1, 2, 3];
  try {
    const { tokenIds } = await replica.complete(name, prompt, { max_tokens: 2 });
    return ok("token-ids", `prompts and replies are token ids: ${JSON.stringify(tokenIds)}`);
  } catch (error) {
    if (!(error instanceof ReplicaError)) throw error;
    return wrong("token-ids", `/v1/completions with token ids: ${error.message}`, FOREIGN);
  }
}

// Runs all checks against one replica. A group of checks that meets an unexpected answer reports it and leaves the other
// groups to go on.

const GROUPS: readonly (readonly [string, (bench: Bench) => AsyncGenerator<Finding>])[] = [
  ["launch-flags", checkLaunchFlags],
  ["text", checkText],
  ["logprobs", checkLogprobs],
  ["stops", checkStops],
  ["determinism", checkDeterminism],
  ["adapters", checkAdapters],
  ["abort", checkAbort],
];

/** `onFinding` hears of each finding when it is made. */
export async function examine(
  replica: Replica,
  ours: OurSide,
  onFinding: (finding: Finding) => void,
): Promise<Examined> {
  const findings: Finding[] = [];
  const found = (finding: Finding) => {
    findings.push(finding);
    onFinding(finding);
  };
  let served: ReplicaModel | null = null;
  try {
    const identity = await identify(replica, ours.maxModelLen);
    for (const finding of identity.findings) found(finding);
    served = identity.served;
  } catch (error) {
    found(unexpected("reach", error));
  }
  if (served === null) return { findings, served };
  const bench = await Bench.open(replica, ours, served);
  for (const [name, check] of GROUPS) {
    try {
      for await (const finding of check(bench)) found(finding);
    } catch (error) {
      found(unexpected(name, error));
    }
  }
  return { findings, served };
}

function unexpected(check: string, error: unknown): Finding {
  if (!(error instanceof ReplicaError)) throw error;
  if (error.status === 0) return wrong(check, `no answer: ${error.message}`, "Check the address, and whether it runs.");
  return wrong(check, `answers ${error.status}: ${error.message}`, "Look at the replica's log.");
}

/** Checks what the options name: replicas, the torch trainer or both; this machine if neither. False if anything is wrong. */
export async function examineAll(config: Config, asJson: boolean): Promise<boolean> {
  const isLocal = config.engineUrl.length === 0 && config.trainer === "onnx";
  const machine = isLocal ? await printed(checkMachine(config), asJson) : null;
  const replicas = config.engineUrl.length > 0 ? await examineReplicas(config, asJson) : [];
  const trainer = config.trainer === "torch" ? await examineTrainer(config, asJson) : null;
  const all = [...(machine ?? []), ...replicas.flatMap(({ findings }) => findings), ...(trainer ?? [])];
  const isFit = countOf(all, "wrong") === 0;
  if (asJson) {
    const shown = replicas.map(({ url, served, findings }) => ({ url, model: served?.name ?? null, checks: findings }));
    const parts = { machine: machine && { checks: machine }, replicas: shown, trainer: trainer && { checks: trainer } };
    console.log(JSON.stringify({ fit: isFit, ...parts }));
  }
  return isFit;
}

async function examineTrainer(config: Config, asJson: boolean): Promise<Finding[]> {
  const { folder } = await findModel(config, createLog({ level: "warn", format: "text" }), false);
  if (!asJson) console.log(config.trainerCommand);
  return printed(checkTrainer(config, folder), asJson);
}

async function printed(found: AsyncIterable<Finding>, asJson: boolean): Promise<Finding[]> {
  const findings: Finding[] = [];
  for await (const finding of found) {
    findings.push(finding);
    if (!asJson) printFinding(finding);
  }
  if (!asJson) printCounts(findings);
  return findings;
}

function printFinding(finding: Finding): void {
  for (const line of findingLines(finding)) console.log(line);
}

async function examineReplicas(config: Config, asJson: boolean): Promise<(Examined & { url: string })[]> {
  const ours = await ourSide(config);
  const examined: (Examined & { url: string })[] = [];
  try {
    for (const { url } of config.engineUrl.map(readEngineUrl)) {
      if (!asJson) console.log(url);
      const replica = new Replica(url, config.engineApiKey);
      const examination = await examine(replica, ours, asJson ? () => {} : printFinding);
      examined.push({ url, ...examination });
      if (!asJson) printSummary(examination, ours);
    }
  } finally {
    await ours.text.close();
  }
  return examined;
}

async function ourSide(config: Config): Promise<OurSide> {
  const { folder } = await findModel(config, createLog({ level: "warn", format: "text" }), false);
  const shape = shapeOf(folder);
  return {
    text: await loadText(folder, config),
    eosTokenIds: readServedConfig(folder).eosTokenIds,
    shape,
    maxLogprobs: config.maxLogprobs,
    maxLoraRank: config.maxLoraRank,
    maxModelLen: config.maxModelLen ?? shape?.maxPositions ?? 0,
    data: resolve(config.data),
  };
}

/** null for a model family that only vLLM knows. */
function shapeOf(folder: string): ModelConfig | null {
  try {
    return readModelConfig(folder);
  } catch (error) {
    if (error instanceof CheckpointError) return null;
    throw error;
  }
}

function printSummary({ findings, served }: Examined, ours: OurSide): void {
  printCounts(findings);
  const misses = findings.some(({ advice }) => /Start vLLM with/.test(advice ?? ""));
  if (misses && served !== null && !served.isFlywheel) {
    console.log(`  recommended:\n    ${launchLine({ served, ours })}`);
  }
}

function printCounts(findings: readonly Finding[]): void {
  const counts = (["ok", "warning", "wrong"] as const).map((status) => `${countOf(findings, status)} ${status}`);
  console.log(`  ${counts.join(", ")}`);
}

function countOf(findings: readonly Finding[], status: Status): number {
  return findings.filter((finding) => finding.status === status).length;
}
