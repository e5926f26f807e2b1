// Ids and texts of the pre-tokenizers that popular families have, as Rust's tokenizers gives them. The vocabularies are
// small ones of our own (test/fixtures/tokenizers); make-families.py there wrote the table.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { HfTokenizer } from "../hf-tokenizer.ts";

interface Family {
  base: string;
  changes: Record<string, unknown>;
  pieces?: string[];
  merges?: string[];
  ids: number[][];
  decoded: [ids: number[], text: string][];
}

const folder = new URL("../../../test/fixtures/tokenizers/", import.meta.url);
const read = (name: string) => JSON.parse(readFileSync(new URL(name, folder), "utf8"));
const { texts, families } = read("families.json") as { texts: string[]; families: Record<string, Family> };

function load({ base, changes, pieces = [], merges = [] }: Family): HfTokenizer {
  const tokenizer = { ...read(`${base}.json`), ...changes };
  // New pieces take the place of the last ones.
  const { model } = tokenizer;
  const last = Math.max(...Object.values<number>(model.vocab));
  for (const [i, piece] of pieces.entries()) {
    const id = last - pieces.length + 1 + i;
    const old = Object.keys(model.vocab).find((name) => model.vocab[name] === id)!;
    delete model.vocab[old];
    model.vocab[piece] = id;
    model.merges = model.merges.filter((merge: string) => merge.replace(" ", "") !== old);
  }
  model.merges.push(...merges);
  return new HfTokenizer({
    tokenizer,
    tokenizerConfig: {},
    specialTokensMap: {},
    modelConfig: {},
    generationConfig: {},
    chatTemplates: new Map(),
  });
}

describe.each(Object.entries(families))("%s", (_name, family) => {
  const tokenizer = load(family);

  test.each(texts.map((text, i) => [text, family.ids[i]!] as const))("%j becomes the same ids", (text, ids) => {
    expect(tokenizer.encode(text)).toEqual(ids);
  });

  test("ids become the same text, invalid byte runs included", () => {
    const decoded = family.decoded.map(([ids]) => [ids, tokenizer.decode(ids, { spacesBetweenSpecialTokens: false })]);
    expect(decoded).toEqual(family.decoded);
  });
});
