// Gives @huggingface/tokenizers types of our own: its declarations do not resolve under Node's module rules. It runs the
// stages of tokenizer.json that we do not, and whole models that are not BPE.

import * as library from "@huggingface/tokenizers";
import type { JsonObject } from "../../json/json.ts";
import type { AddedToken } from "./added-tokens.ts";

export interface LibraryStages {
  normalizer: { normalize(text: string): string } | null;
  pre_tokenizer: { pre_tokenize(text: string, options: { section_index: number }): string[] } | null;
  post_processor: {
    post_process(tokens: string[], pair: null, addSpecialTokens: boolean): { tokens: string[] };
  } | null;
}

interface LibraryTokenizer extends LibraryStages {
  encode(text: string, options: { add_special_tokens: boolean }): { ids: (number | undefined)[] };
}

const Tokenizer = library.Tokenizer as unknown as new (tokenizer: object, config: object) => LibraryTokenizer;

/** The normaliser, the given pre-tokenizer and the post-processor, without the model. */
export function libraryStages(tokenizer: JsonObject, preTokenizer: JsonObject | null): LibraryStages {
  const stages = {
    normalizer: tokenizer.normalizer ?? null,
    pre_tokenizer: preTokenizer,
    post_processor: tokenizer.post_processor ?? null,
    decoder: null,
    added_tokens: [],
    model: { type: "BPE", vocab: {}, merges: [] },
  };
  return new Tokenizer(stages, {});
}

/** Everything by the library: Unigram models and rare pipelines. */
export function libraryEncoder(
  tokenizer: JsonObject,
  config: JsonObject,
  added: readonly AddedToken[],
): (text: string) => number[] {
  const whole = new Tokenizer({ ...tokenizer, added_tokens: added }, config);
  return (text) => whole.encode(text, { add_special_tokens: false }).ids.filter((id) => id !== undefined);
}
