// Writes the tokenizers of test/fixtures/tokenizers as GGUF metadata and compares ids with those of their tokenizer.json.

import { readFileSync } from "node:fs";
import { describe, expect, it, test } from "vitest";
import { HfTokenizer } from "../hf-tokenizer.ts";
import { TextFilesError } from "../tokenizer-files.ts";
import { ggufTextFiles, type TextMetadata } from "./gguf-text-files.ts";

const folder = new URL("../../../test/fixtures/tokenizers/", import.meta.url);
const read = (name: string) => JSON.parse(readFileSync(new URL(name, folder), "utf8"));
const { texts } = read("families.json") as { texts: string[] };
const more = [
  "====================",
  "aaaaaaaaaaaaa aaaaaaa",
  "a<s>b</s> <|endoftext|>c",
  "12345 1,234.5",
  "\n\n\n  x\t\ty  ",
];

type Values = Record<string, string | boolean | number | string[] | number[]>;

function metadataOf(values: Values): TextMetadata {
  const get = (key: string, fallback: unknown): never => {
    const value = values[key] ?? fallback;
    if (value === undefined) throw new Error(`no ${key}`);
    return value as never;
  };
  return {
    path: "model.gguf",
    has: (key) => values[key] !== undefined,
    keys: () => Object.keys(values),
    ...{ text: get, flag: get, number: get },
    texts: (key) => get(key, undefined),
    numbers: (key) => get(key, undefined),
  };
}

interface Stored {
  model: { vocab: Record<string, number>; merges: (string | string[])[]; byte_fallback: boolean };
  added_tokens: { id: number; content: string; special: boolean }[];
}

/** Pieces in order of ids, kinds, and merges or scores. */
function written({ model, added_tokens: added }: Stored, rest: Values = {}): Values {
  const ids = { ...model.vocab, ...Object.fromEntries(added.map(({ content, id }) => [content, id])) };
  const pieces = Object.keys(ids).sort((a, b) => ids[a]! - ids[b]!);
  const kindOf = (piece: string): number => {
    const token = added.find(({ content }) => content === piece);
    if (piece === "<unk>") return 2;
    if (token !== undefined) return token.special ? 3 : 4;
    return /^<0x..>$/.test(piece) ? 6 : 1;
  };
  const merged = model.merges.map((merge) => (typeof merge === "string" ? merge.replace(" ", "") : merge.join("")));
  const common = {
    "general.architecture": "llama",
    "tokenizer.ggml.tokens": pieces,
    "tokenizer.ggml.token_type": pieces.map(kindOf),
  };
  if (!model.byte_fallback) {
    const merges = model.merges.map((merge) => (typeof merge === "string" ? merge : merge.join(" ")));
    return { ...common, "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.merges": merges, ...rest };
  }
  // The earlier a piece is merged, the better its score; characters come after all.
  const scores = pieces.map((piece) => (merged.includes(piece) ? -merged.indexOf(piece) : -1e6));
  return { ...common, "tokenizer.ggml.model": "llama", "tokenizer.ggml.scores": scores, ...rest };
}

function folderTokenizer(tokenizer: Stored & Record<string, unknown>): HfTokenizer {
  const empty = { tokenizerConfig: {}, specialTokensMap: {}, modelConfig: {}, generationConfig: {} };
  return new HfTokenizer({ tokenizer, ...empty, chatTemplates: new Map() });
}

describe.each<[string, Values]>([
  ["gpt2-style.json", { "tokenizer.ggml.pre": "gpt-2" }],
  ["split-style.json", { "tokenizer.ggml.pre": "llama-bpe" }],
  ["llama-style.json", {}],
  ["gemma-style.json", { "tokenizer.ggml.add_space_prefix": false }],
])("%s", (name, rest) => {
  const { added_tokens: added, normalizer, ...others } = read(name);
  const stored = {
    ...others,
    // A file cannot say that a token swallows white space, and llama.cpp does not normalise.
    added_tokens: added.map((token: object) => ({ ...token, lstrip: false, rstrip: false })),
    normalizer: name === "split-style.json" ? null : normalizer,
  };
  const expected = folderTokenizer(stored);
  const tokenizer = new HfTokenizer(ggufTextFiles(metadataOf(written(stored, rest))));

  it("gives the same ids and texts as its tokenizer.json", () => {
    for (const text of [...texts, ...more]) {
      const ids = tokenizer.encode(text);
      expect([text, ids]).toEqual([text, expected.encode(text)]);
      expect(tokenizer.decode(ids)).toBe(expected.decode(ids));
    }
  });

  it("has the same pieces and special tokens", () => {
    const describeAll = (each: HfTokenizer) =>
      Array.from({ length: expected.vocabSize }, (_, id) => [each.piece(id), [...each.bytes(id)], each.isSpecial(id)]);
    expect(describeAll(tokenizer)).toEqual(describeAll(expected));
  });
});

describe("the rest of the metadata", () => {
  const stored = read("llama-style.json");
  const load = (rest: Values) => new HfTokenizer(ggufTextFiles(metadataOf(written(stored, rest))));

  it("says which tokens stand around a text", () => {
    const roles = { "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2 };
    const framed = (rest: Values) => load({ ...roles, ...rest }).encode("", { addSpecialTokens: true });
    expect(framed({})).toEqual([1]);
    expect(framed({ "tokenizer.ggml.add_bos_token": false })).toEqual([]);
    expect(framed({ "tokenizer.ggml.add_eos_token": true })).toEqual([1, 2]);
    expect(load(roles)).toMatchObject({ eosTokenId: 2, specialTokens: { bos_token: "<s>", eos_token: "</s>" } });
  });

  it("lets the chat tokens of Phi-3 swallow the white space after them", () => {
    const [user, hi] = [
      stored.added_tokens.find(({ content }: { content: string }) => content === "<|user|>").id,
      "hi",
    ];
    expect(load({}).encode("<|user|>  \n hi")).not.toEqual(load({}).encode("<|user|>hi"));
    const phi3 = load({ "general.architecture": "phi3" });
    expect(phi3.encode("<|user|>  \n hi")).toEqual([user, ...phi3.encode(hi)]);
  });

  it("has chat templates by name", () => {
    const rest = { "tokenizer.chat_template": "a", "tokenizer.chat_template.tool_use": "b" };
    expect([...ggufTextFiles(metadataOf(written(stored, rest))).chatTemplates]).toEqual([
      ["default", "a"],
      ["tool_use", "b"],
    ]);
  });

  it.each<[Values, RegExp]>([
    [{ "tokenizer.ggml.model": "bert" }, /tokenizers of the kind "bert" are not supported \(supported: gpt2, llama\)/],
    [{ "tokenizer.ggml.scores": [1] }, /it has \d+ tokens, but only 1 scores/],
    [{ "tokenizer.ggml.token_type": [1] }, /it has \d+ tokens, but only 1 kinds/],
    [{ "tokenizer.ggml.tokens": ["a", "b", "a"] }, /has the token "a" twice/],
    [
      { "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "new" },
      /pre-tokenizer "new" is not known \(known: gpt-2/,
    ],
  ])("is refused with a sentence: %j", (rest, message) => {
    expect(() => load(rest)).toThrow(TextFilesError);
    expect(() => load(rest)).toThrow(message);
  });
});

test("of pieces with the same score the leftmost is merged first", () => {
  const pieces = ["<unk>", "a", "aa", "aaa"];
  const tokenizer = new HfTokenizer(
    ggufTextFiles(
      metadataOf({
        "general.architecture": "llama",
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": pieces,
        "tokenizer.ggml.token_type": [2, 1, 1, 1],
        "tokenizer.ggml.scores": [0, -9, -2, -1],
        "tokenizer.ggml.add_space_prefix": false,
      }),
    ),
  );
  // aa a -> aaa, then aa and aaa: (a, aa) and (aa, a) make the same piece, so the left one wins.
  expect(tokenizer.encode("aaaaa").map((id) => pieces[id])).toEqual(["aaa", "aa"]);
  expect(tokenizer.encode("aaaaaaa").map((id) => pieces[id])).toEqual(["aaa", "aaa", "a"]);
});
