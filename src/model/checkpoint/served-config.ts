// What a server needs to know from config.json when another one runs the model. It knows no model family, so it also
// reads models that the embedded engine cannot run.

import { ConfigFields } from "./config-fields.ts";
import { readConfigJson } from "./config-json.ts";

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
