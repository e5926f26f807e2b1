// generation_config.json: the sampling values a model's makers recommend, used where a request leaves them out, and the
// ids that end a reply. Everything is optional; what is there is checked.
// `do_sample` is ignored, as vLLM does: many files carry do_sample false beside a temperature, and a request's own
// temperature (0 = greedy) decides.

import { join } from "node:path";
import type { JsonObject } from "../../json/json-object.ts";
import { ConfigFields } from "./config-fields.ts";
import { readJsonObject, readOptionalJsonObject } from "./json-file.ts";

export interface GenerationDefaults {
  /** null in all of these: the file says nothing. */
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

/** Reads `generation_config.json` in a folder. A model may have none: all null. A folder that was named for the file must. */
export function readGenerationConfig(folder: string, { mustExist = false } = {}): GenerationDefaults {
  const file = join(folder, "generation_config.json");
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
