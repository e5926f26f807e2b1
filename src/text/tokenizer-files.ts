// Reads the files of a Hugging Face checkpoint folder that concern text, and checks their shape. Optional files may be
// missing. A broken file is an error that names it.

import { closeSync, fstatSync, readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { OperatorError } from "../errors/faults.ts";
import { isJsonObject, type JsonObject } from "../json/json.ts";
import { openFile } from "../system/files.ts";

export interface TextFiles {
  tokenizer: JsonObject;
  tokenizerConfig: JsonObject;
  specialTokensMap: JsonObject;
  /** config.json. */
  modelConfig: JsonObject;
  generationConfig: JsonObject;
  /** Chat templates by name; "default" is the one used when none is asked for. */
  chatTemplates: ReadonlyMap<string, string>;
}

export class TextFilesError extends OperatorError {
  override name = "TextFilesError";
}

export async function readTextFiles(folder: string): Promise<TextFiles> {
  const tokenizer = readJson(folder, "tokenizer.json");
  if (!tokenizer) {
    throw new TextFilesError(
      `${basename(folder)} has no tokenizer.json: save the tokenizer in the fast (tokenizer.json) format first.`,
    );
  }
  const tokenizerConfig = readJson(folder, "tokenizer_config.json") ?? {};
  return {
    tokenizer,
    tokenizerConfig,
    specialTokensMap: readJson(folder, "special_tokens_map.json") ?? {},
    modelConfig: readJson(folder, "config.json") ?? {},
    generationConfig: readJson(folder, "generation_config.json") ?? {},
    chatTemplates: await readChatTemplates(folder, tokenizerConfig),
  };
}

/** Later sources win: tokenizer_config.json, chat_template.json, chat_template.jinja, folders of named templates. */
async function readChatTemplates(folder: string, tokenizerConfig: JsonObject): Promise<Map<string, string>> {
  const templates = new Map<string, string>();
  const declared = tokenizerConfig.chat_template;
  if (typeof declared === "string") templates.set("default", declared);
  if (Array.isArray(declared)) {
    for (const entry of declared) {
      if (isJsonObject(entry) && typeof entry.name === "string" && typeof entry.template === "string") {
        templates.set(entry.name, entry.template);
      }
    }
  }
  const legacy = readJson(folder, "chat_template.json");
  if (typeof legacy?.chat_template === "string") templates.set("default", legacy.chat_template);
  const file = readIfPresent(folder, "chat_template.jinja");
  if (file !== null) templates.set("default", file);
  for (const name of ["additional_chat_templates", "chat_templates"]) {
    for (const entry of await listIfPresent(join(folder, name))) {
      if (!entry.endsWith(".jinja")) continue;
      const template = readIfPresent(folder, join(name, entry));
      if (template !== null) templates.set(basename(entry, ".jinja"), template);
    }
  }
  return templates;
}

function readJson(folder: string, name: string): JsonObject | null {
  const text = readIfPresent(folder, name);
  if (text === null) return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new TextFilesError(`${basename(folder)}/${name} is not valid JSON.`, { cause });
  }
  if (!isJsonObject(value)) throw new TextFilesError(`${basename(folder)}/${name} must hold a JSON object.`);
  return value;
}

/** The text of a regular file; null when nothing has that name. */
function readIfPresent(folder: string, name: string): string | null {
  let descriptor: number | null = null;
  try {
    descriptor = openFile(join(folder, name));
    if (!fstatSync(descriptor).isFile()) throw new Error("not a regular file");
    return readFileSync(descriptor, "utf8");
  } catch (cause) {
    if (isMissing(cause)) return null;
    throw new TextFilesError(`${basename(folder)}/${name} cannot be read: ${(cause as Error).message}.`, { cause });
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}

async function listIfPresent(path: string): Promise<string[]> {
  try {
    return (await readdir(path)).sort();
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === "ENOENT" || code === "ENOTDIR";
}
