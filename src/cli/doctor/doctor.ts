// Examines this machine, or replicas one after the other and the trainer, and prints what was found: a line for each
// check, or JSON.

import { resolve } from "node:path";
import { findModel, loadText } from "../../app/model-files.ts";
import { readEngineUrl } from "../../app/remote-engines.ts";
import type { Config } from "../../config/options.ts";
import { CheckpointError } from "../../model/checkpoint/checkpoint-error.ts";
import { type ModelConfig, readModelConfig } from "../../model/checkpoint/model-config.ts";
import { readServedConfig } from "../../model/checkpoint/served-config.ts";
import { createLog } from "../../observe/log.ts";
import type { OurSide } from "./bench.ts";
import { type Examination, examine } from "./examine.ts";
import { type Finding, findingLines, type Status } from "./finding.ts";
import { launchLine } from "./launch-flags.check.ts";
import { checkMachine } from "./local.check.ts";
import { Replica } from "./replica.ts";
import { checkTrainer } from "./trainer.check.ts";

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

async function examineReplicas(config: Config, asJson: boolean): Promise<(Examination & { url: string })[]> {
  const ours = await ourSide(config);
  const examined: (Examination & { url: string })[] = [];
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

function printSummary({ findings, served }: Examination, ours: OurSide): void {
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
