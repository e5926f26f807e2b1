// The tokens that end a reply. A file names one or two of them by id. Many chat models have more, which a folder lists in
// generation_config.json; a file has no such list, so, as in llama.cpp, they are known by their texts.

import type { GgufMetadata } from "./gguf-metadata.ts";

const ENDING_TEXTS: ReadonlySet<string> = new Set([
  ...["<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|im_end|>", "<|endoftext|>", "<|end|>"],
  ...["<end_of_turn>", "<eos>", "</s>", "<EOT>", "<｜end▁of▁sentence｜>", "<|return|>", "<|call|>"],
]);
/** Tokens of these kinds are no text of the model's: its control tokens and those that its makers added. */
const CONTROL = 3;
const USER_DEFINED = 4;

export function endTokens(metadata: GgufMetadata): number[] {
  const named = ["eos", "eot", "eom"]
    .map((role) => `tokenizer.ggml.${role}_token_id`)
    .filter((key) => metadata.has(key))
    .map((key) => metadata.number(key));
  return [...new Set([...named, ...byText(metadata)])];
}

function byText(metadata: GgufMetadata): number[] {
  if (!metadata.has("tokenizer.ggml.tokens") || !metadata.has("tokenizer.ggml.token_type")) return [];
  const kinds = metadata.numbers("tokenizer.ggml.token_type");
  const ids: number[] = [];
  for (const [id, text] of metadata.texts("tokenizer.ggml.tokens").entries()) {
    if ((kinds[id] === CONTROL || kinds[id] === USER_DEFINED) && ENDING_TEXTS.has(text)) ids.push(id);
  }
  return ids;
}
