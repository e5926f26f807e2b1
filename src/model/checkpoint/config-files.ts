// What a checkpoint's configuration files say: config.json, what a server needs of it, and generation_config.json.
import { join } from "node:path";
import type { JsonObject } from "../../json/json.ts";
import { readGgufConfig, readGgufGeneration } from "../gguf/gguf-config.ts";
import { isGguf } from "./checkpoint-file.ts";
import { ConfigFields } from "./config-fields.ts";
import { readJsonObject, readOptionalJsonObject } from "./json-file.ts";

// The configuration of a checkpoint as JSON: config.json of a folder, or what stands for it in a GGUF file.

/** `file` is for error messages. */
export function readConfigJson(path: string): { file: string; json: JsonObject } {
  if (isGguf(path)) return { file: path, json: readGgufConfig(path) };
  const file = join(path, "config.json");
  return { file, json: readJsonObject(file, 16 * 2 ** 20) };
}

// What a server needs to know from config.json when another one runs the model. It knows no model family, so it also
// reads models that the embedded engine cannot run.

export interface ServedConfig {
  vocabSize: number;
  /** Possibly empty. */
  eosTokenIds: readonly number[];
}

export function readServedConfig(path: string): ServedConfig {
  const { file, json } = readConfigJson(path);
  const top = new ConfigFields(file, json);
  // Multimodal checkpoints keep the language model's fields in an object of their own.
  const fields = top.object("text_config") ?? top;
  const outermost = top.raw("eos_token_id") === undefined ? fields : top;
  return { vocabSize: fields.count("vocab_size"), eosTokenIds: outermost.tokenIds("eos_token_id") ?? [] };
}

// Reads generation_config.json: the sampling values that a model's makers recommend, used for fields that a request
// leaves out, and the ids that end a reply. Every field is optional, and every field present is checked. `do_sample` is
// ignored, as in vLLM: many files have do_sample false beside a temperature. A request's own temperature decides (0 =
// greedy).

export interface GenerationDefaults {
  /** null in any field: the file does not set it. */
  temperature: number | null;
  topP: number | null;
  /** 0 = off. */
  topK: number | null;
  minP: number | null;
  repetitionPenalty: number | null;
  /** Output budget when the request has none. */
  maxNewTokens: number | null;
  eosTokenIds: readonly number[] | null;
}

/** The fields of the file that are read. */
export const GENERATION_FIELDS: readonly string[] = [
  "temperature",
  "top_p",
  "top_k",
  "min_p",
  "repetition_penalty",
  "max_new_tokens",
  "eos_token_id",
];

/** Reads `generation_config.json` in a folder, or what stands for it in a GGUF file. If a model has none, all fields are null; a folder named for the file must have it. */
export function readGenerationConfig(path: string, { mustExist = false } = {}): GenerationDefaults {
  if (isGguf(path)) return parseGenerationConfig(path, readGgufGeneration(path));
  const file = join(path, "generation_config.json");
  const read = mustExist ? readJsonObject : readOptionalJsonObject;
  return parseGenerationConfig(file, read(file, 2 ** 20) ?? {});
}

export function parseGenerationConfig(file: string, json: JsonObject): GenerationDefaults {
  const fields = new ConfigFields(file, json);
  const optional = <T>(key: string, read: () => T): T | null => (fields.raw(key) === undefined ? null : read());
  const topP = optional("top_p", () => fields.positive("top_p"));
  if (topP !== null && topP > 1) throw fields.problem("top_p", "a number in (0, 1]");
  const topK = optional("top_k", () => fields.between("top_k", -1, 2 ** 31));
  if (topK !== null && !Number.isInteger(topK)) throw fields.problem("top_k", "an integer");
  return {
    temperature: optional("temperature", () => fields.between("temperature", 0, 1e6)),
    topP,
    // -1 is another way to write "off".
    topK: topK === null ? null : Math.max(topK, 0),
    minP: optional("min_p", () => fields.between("min_p", 0, 1)),
    repetitionPenalty: optional("repetition_penalty", () => fields.positive("repetition_penalty")),
    maxNewTokens: optional("max_new_tokens", () => fields.count("max_new_tokens")),
    eosTokenIds: fields.tokenIds("eos_token_id"),
  };
}
