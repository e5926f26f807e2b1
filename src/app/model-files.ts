// Finds the folder of the model to serve and reads its text side.
import { existsSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { Config } from "../config/options.ts";
import { OperatorError } from "../errors/faults.ts";
import { isGguf } from "../model/checkpoint/checkpoint-file.ts";
import { readGgufMetadata } from "../model/gguf/open-gguf.ts";
import { createProgressBar, createProgressLines } from "../model/hub/download-progress.ts";
import { resolveModel } from "../model/hub/hub.ts";
import type { Log } from "../observe/log.ts";
import { compiledEntry } from "../system/package.ts";
import { ggufTextFiles } from "../text/gguf/gguf-text-files.ts";
import { type TextModel, textModelOf } from "../text/text-model.ts";
import { readTextFiles, type TextFiles } from "../text/tokenizer-files.ts";

/** Heap of the thread that tokenises long texts: a vocabulary and the longest text. */
const ENCODER_MB = 1024;

export const BUNDLED_NAME = "flywheel-mini";

/** Downloads the model first if it is not on this machine. `withWeights`: false where other servers run it. */
export async function findModel(
  config: Config,
  log: Log,
  withWeights = true,
): Promise<{ folder: string; name: string }> {
  if (config.model === "bundled") {
    return { folder: fileURLToPath(new URL(`../../models/${BUNDLED_NAME}`, import.meta.url)), name: BUNDLED_NAME };
  }
  if (isGguf(config.model)) {
    if (!existsSync(config.model)) throw new OperatorError(`--model: there is no file ${config.model}`);
    return { folder: config.model, name: basename(config.model).replace(/(-00001-of-\d{5})?\.gguf$/i, "") };
  }
  const model = config.revision === null ? config.model : `${config.model}@${config.revision}`;
  const env = { ...hubEnvironment(config), ...(config.hfToken === null ? {} : { HF_TOKEN: config.hfToken }) };
  const { folder, origin } = await resolveModel(existsSync(config.model) ? config.model : model, {
    env,
    withWeights,
    onProgress:
      process.stderr.isTTY && config.logFormat === "text"
        ? createProgressBar(process.stderr)
        : createProgressLines((line) => log.info("downloading", { ...line })),
  });
  return { folder, name: origin?.repository ?? (basename(config.model) || config.model) };
}

/** Says where the cache is. */
export function hubEnvironment({ downloadDir }: Config): NodeJS.ProcessEnv {
  return downloadDir === null ? process.env : { ...process.env, HF_HUB_CACHE: downloadDir };
}

/** The tokenizer and chat templates, under the options that concern them. `folder`: or a GGUF file. */
export async function loadText(folder: string, config: Config): Promise<TextModel> {
  const options = {
    chatTemplate: readTemplate(config.chatTemplate),
    chatTemplateKwargs: config.defaultChatTemplateKwargs,
    literalControlTokens: config.literalControlTokens,
    contentFormat: config.chatTemplateContentFormat,
    startEncoder: () =>
      new Worker(compiledEntry(import.meta.url, "./encoder-worker.ts"), {
        workerData: { folder },
        resourceLimits: { maxOldGenerationSizeMb: ENCODER_MB },
      }),
  };
  return textModelOf(await readModelText(folder), options);
}

/** The files of the text side. `folder`: or a GGUF file. */
export async function readModelText(folder: string): Promise<TextFiles> {
  return isGguf(folder) ? ggufTextFiles(readGgufMetadata(folder)) : readTextFiles(folder);
}

/** The content of the file, or the text itself. */
function readTemplate(given: string | null): string | null {
  if (given === null) return null;
  if (existsSync(given)) {
    try {
      return readFileSync(given, "utf8");
    } catch (error) {
      throw new OperatorError(`--chat-template: cannot read ${given}: ${(error as Error).message}`, { cause: error });
    }
  }
  // A path that does not exist would render as itself in every prompt.
  if (!/[{}\n]/.test(given) && /[./\\]/.test(given)) {
    throw new OperatorError(`--chat-template: there is no file ${given}`);
  }
  return given;
}
