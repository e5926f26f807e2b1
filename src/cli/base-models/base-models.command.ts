// `flywheel pull | list | show | rm`: base models in the Hugging Face cache, which other tools share. Policies, which
// training makes of them, are `flywheel policies`.

import { existsSync } from "node:fs";
import type { Command } from "commander";
import { DEFAULT_WEIGHT_TYPE } from "../../app/embedded-engine.ts";
import { memoryPlan } from "../../app/memory-plan.ts";
import { findModel, hubEnvironment } from "../../app/model-files.ts";
import { loadConfig } from "../../config/load.ts";
import type { Config, OptionName } from "../../config/options.ts";
import { OperatorError } from "../../errors/faults.ts";
import { storedType } from "../../model/checkpoint/checkpoint.ts";
import { cachedModel, cachedModels, removeCached } from "../../model/hub/cached-models.ts";
import { hubCacheFolder } from "../../model/hub/hub-cache.ts";
import { createLog } from "../../observe/log.ts";
import { bytesText, countText } from "../../system/text.ts";
import { printTable } from "../draw.ts";
import { addOptionFlags, givenFlags } from "../flags.ts";
import { planLines } from "./plan-lines.ts";

const CACHE: readonly OptionName[] = ["downloadDir"];
const DOWNLOAD: readonly OptionName[] = ["revision", "downloadDir", "hfToken"];
const MEMORY: readonly OptionName[] = [
  "dtype",
  "kvCacheMemoryBytes",
  "maxModelLen",
  "blockSize",
  "dataParallelSize",
  "threads",
];

export function addBaseModelCommands(program: Command): void {
  const pull = program
    .command("pull")
    .description("Download a model from the Hugging Face hub, so that serve starts without the network.")
    .argument("<MODEL>", "org/name or org/name@revision");
  addOptionFlags(pull, DOWNLOAD);
  pull.action(async (model: string) => {
    const { folder, name } = await findModel(configOf(pull, { model }), createLog({ level: "info", format: "text" }));
    console.log(`${name} is in ${folder}`);
  });

  const list = program
    .command("list")
    .alias("ls")
    .description("List the models in the Hugging Face cache, with their size and the memory that serving them takes.")
    .option("--json", "print JSON");
  addOptionFlags(list, [...CACHE, ...MEMORY]);
  list.action((options: { json?: boolean }) => listModels(configOf(list), options.json ?? false));

  const show = program
    .command("show")
    .description("Show a model: family, type, context, parameters, memory. Reads no weights.")
    .argument("<MODEL>", "org/name in the cache, a checkpoint folder, a GGUF file, or bundled")
    .option("--json", "print JSON");
  addOptionFlags(show, [...CACHE, ...MEMORY]);
  show.action(async (model: string, options: { json?: boolean }) => {
    const config = configOf(show, { model });
    const folder = cachedModel(model, hubEnvironment(config))?.snapshot ?? (await localFolder(config));
    const plan = await memoryPlan(folder, config);
    if (options.json) console.log(JSON.stringify({ model, folder, stored: storedType(folder), ...plan }));
    else for (const line of [`model      ${model} in ${folder}`, ...planLines(plan)]) console.log(line);
  });

  const remove = program
    .command("rm")
    .description("Remove a model from the Hugging Face cache, for other tools too.")
    .argument("<org/name>");
  addOptionFlags(remove, CACHE);
  remove.action((repository: string) => {
    const env = hubEnvironment(configOf(remove));
    console.log(`removed ${repository} from ${hubCacheFolder(env)}: ${bytesText(removeCached(repository, env))}`);
  });
}

function configOf(command: Command, more: Partial<Record<OptionName, unknown>> = {}): Config {
  return loadConfig({ flags: { ...givenFlags(command), ...more }, env: process.env });
}

/** A folder, a GGUF file or the bundled model. Nothing is downloaded. */
async function localFolder(config: Config): Promise<string> {
  if (/^[\w.-]+\/[\w.-]+$/.test(config.model) && !existsSync(config.model)) {
    throw new OperatorError(`${config.model} is not here: \`flywheel pull ${config.model}\` downloads it`);
  }
  return (await findModel(config, createLog({ level: "warn", format: "text" }))).folder;
}

async function listModels(config: Config, asJson: boolean): Promise<void> {
  const found = cachedModels(hubEnvironment(config)).map(async (model) => {
    const plan = await servable(model.snapshot, config);
    return {
      ...model,
      stored: storedType(model.snapshot),
      plan: "problem" in plan ? null : plan,
      problem: "problem" in plan ? plan.problem : null,
    };
  });
  const models = await Promise.all(found);
  if (asJson) {
    console.log(JSON.stringify(models));
    return;
  }
  const rows = models.map(({ repository, bytes, missing, stored, plan, problem }) => [
    repository,
    bytesText(bytes),
    plan?.family ?? "-",
    stored ?? "-",
    plan === null ? "-" : countText(plan.servedTokens),
    plan === null ? "-" : bytesText(plan.weightBytes),
    missing.length > 0 ? `incomplete: without ${missing[0]}` : (problem ?? "ready"),
  ]);
  const type = config.dtype === "auto" ? DEFAULT_WEIGHT_TYPE : config.dtype;
  printTable([["model", "disk", "family", "stored", "context", `as ${type}`, "state"], ...rows]);
  if (rows.length > 0) return;
  console.log(`no models in ${hubCacheFolder(hubEnvironment(config))}; \`flywheel pull org/name\` downloads one`);
}

async function servable(snapshot: string, config: Config) {
  try {
    return await memoryPlan(snapshot, config);
  } catch (error) {
    if (error instanceof OperatorError) return { problem: error.message.replace(/\s+/g, " ") };
    throw error;
  }
}
