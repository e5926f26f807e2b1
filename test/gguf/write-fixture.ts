// Writes checkpoint folders as GGUF files with the benchmark's writer, and with the tokenizers of the fixtures.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { GgmlType } from "../../bench/models/ggml-blocks.ts";
import type { GgufValue } from "../../bench/models/gguf.ts";
import { writeGgufModel } from "../../bench/models/gguf-model.ts";
import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";

export function writeAsGguf(
  folder: string,
  path: string,
  type: GgmlType,
  entries: Record<string, GgufValue> = {},
): string {
  const checkpoint = openCheckpoint(folder);
  try {
    writeGgufModel(checkpoint, path, type, entries);
  } finally {
    checkpoint.close();
  }
  return path;
}

/** A fixture's tokenizer, whose pieces are bytes, and its chat template. */
export function fixtureTokenizer(folder: string): Record<string, GgufValue> {
  const read = (name: string) => JSON.parse(readFileSync(join(folder, name), "utf8"));
  const { model, added_tokens: added } = read("tokenizer.json");
  const pieces = Object.keys(model.vocab).sort((a, b) => model.vocab[a] - model.vocab[b]);
  const special = new Set(added.map(({ content }: { content: string }) => content));
  return {
    "tokenizer.ggml.model": { type: "string", value: "gpt2" },
    "tokenizer.ggml.pre": { type: "string", value: "gpt-2" },
    "tokenizer.ggml.tokens": { type: "strings", value: pieces },
    "tokenizer.ggml.token_type": { type: "int32s", value: pieces.map((piece) => (special.has(piece) ? 3 : 1)) },
    "tokenizer.ggml.merges": { type: "strings", value: [] },
    "tokenizer.ggml.add_bos_token": { type: "bool", value: false },
    "tokenizer.chat_template": { type: "string", value: read("tokenizer_config.json").chat_template },
  };
}
