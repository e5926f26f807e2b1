import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Tokenizer as LibraryTokenizer } from "@huggingface/tokenizers";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { need, needing } from "../../test/support/needs.ts";
import type { JsonObject } from "../json/json.ts";
import { HfTokenizer } from "./hf-tokenizer.ts";
import { readTextFiles, type TextFiles } from "./tokenizer-files.ts";
import { decodeUtf8, encodeUtf8 } from "./utf8.ts";

interface Reference {
  text: string;
  ids: number[];
  framed?: number[];
  decoded: string;
  visible: string;
}

const folder = new URL("../../test/fixtures/tokenizers/", import.meta.url);
const readFixture = (name: string): unknown => JSON.parse(readFileSync(new URL(name, folder), "utf8"));
const references = readFixture("reference.json") as Record<string, Reference[]>;

function textFiles(tokenizer: unknown, tokenizerConfig: JsonObject = {}): TextFiles {
  return {
    tokenizer: tokenizer as JsonObject,
    tokenizerConfig,
    specialTokensMap: {},
    modelConfig: {},
    generationConfig: {},
    chatTemplates: new Map(),
  };
}

function load(name: string, config: JsonObject = {}): HfTokenizer {
  return new HfTokenizer(textFiles(readFixture(`${name}.json`), config));
}

describe.each(Object.keys(references))("%s", (name) => {
  const tokenizer = load(name);

  test("ids, framed ids and texts are those of Hugging Face tokenizers", () => {
    for (const { text, ids, framed, decoded, visible } of references[name]!) {
      expect(tokenizer.encode(text), text).toEqual(ids);
      expect(tokenizer.encode(text, { addSpecialTokens: true }), text).toEqual(framed ?? ids);
      expect(tokenizer.decode(ids), text).toBe(decoded);
      expect(tokenizer.decode(ids, { skipSpecialTokens: true }), text).toBe(visible);
    }
  });

  test("with a limit, the ids up to it are the same", () => {
    const text = references[name]!.map((reference) => reference.text).join("\n");
    const ids = tokenizer.encode(text);
    for (let maxTokens = 0; maxTokens < ids.length + 2; maxTokens++) {
      const beginning = tokenizer.encode(text, { maxTokens });
      expect(beginning.slice(0, maxTokens + 1)).toEqual(ids.slice(0, maxTokens + 1));
    }
  });

  test("steps give the same ids, about a thousand at a time", () => {
    const text = references[name]!.map((reference) => reference.text)
      .join("\n")
      .repeat(40);
    const steps = tokenizer.encodeSteps(text, { addSpecialTokens: true });
    let count = 0;
    let step = steps.next();
    for (; !step.done; step = steps.next()) count++;
    expect(step.value).toEqual(tokenizer.encode(text, { addSpecialTokens: true }));
    expect(count).toBeGreaterThan(step.value.length / 4096);
  });

  test("the bytes of the tokens, joined, are the text", () => {
    for (const { ids, decoded } of references[name]!) {
      const joined = decodeUtf8(Uint8Array.from(ids.flatMap((id) => [...tokenizer.bytes(id)])));
      expect(tokenizer.stripsLeadingSpace && joined.startsWith(" ") ? joined.slice(1) : joined).toBe(decoded);
    }
  });

  test("pieces and ids name each other", () => {
    for (let id = 0; id < tokenizer.vocabSize; id++) expect(tokenizer.idOf(tokenizer.piece(id)!)).toBe(id);
    expect(tokenizer.piece(tokenizer.vocabSize)).toBeNull();
    expect(tokenizer.idOf("no such piece")).toBeNull();
    expect(tokenizer.bytes(tokenizer.vocabSize)).toHaveLength(0);
    expect(tokenizer.bytes(-1)).toHaveLength(0);
  });

  test("bytes name the token that stands for them; a text's own piece wins over its byte", () => {
    for (let id = 0; id < tokenizer.vocabSize; id++) {
      const bytes = tokenizer.bytes(id);
      const found = tokenizer.idOfBytes(bytes)!;
      expect(tokenizer.bytes(found), `id ${id}`).toEqual(bytes);
      if (found !== id) expect(tokenizer.piece(id)).toMatch(/^<0x[0-9A-F]{2}>$/);
    }
    expect(tokenizer.idOfBytes(encodeUtf8("no such token"))).toBeNull();
    expect(tokenizer.idOfBytes([])).toBeNull();
    expect(tokenizer.idOfBytes([97 + 256])).toBeNull();
  });
});

test.each(["gpt2-style", "llama-style"])(
  "%s: a megabyte without a place to split is encoded in bounded time",
  (name) => {
    const tokenizer = load(name);
    for (const unit of ["a", " ", "😀", "the"]) {
      const text = unit.repeat(Math.ceil(1_000_000 / unit.length));
      expect(tokenizer.encode(text).length).toBeGreaterThan(0); // not hours later
    }
  },
);

test("byte-level: any text comes back exactly", () => {
  const tokenizer = load("gpt2-style");
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 60 }), (text) => {
      const wellFormed = decodeUtf8(encodeUtf8(text));
      expect(tokenizer.decode(tokenizer.encode(wellFormed))).toBe(wellFormed);
    }),
  );
});

test("long words take the heap, short ones the scan: same ids as the library's queue", () => {
  const json = readFixture("gpt2-style.json") as JsonObject;
  const ours = new HfTokenizer(textFiles(json));
  const library = new LibraryTokenizer(json, {});
  const letters = fc.array(fc.constantFrom("t", "h", "e", "o", "r", "a", "n", "s"), { minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(letters, (word) => {
      const text = word.join("");
      expect(ours.encode(text)).toEqual(library.encode(text, { add_special_tokens: false }).ids);
    }),
  );
});

describe("special tokens", () => {
  test("roles make a token special; configuration may add tokens that tokenizer.json lacks", () => {
    const json = readFixture("gpt2-style.json") as JsonObject;
    const plain = new HfTokenizer(textFiles(json));
    const next = plain.vocabSize;
    const tokenizer = new HfTokenizer(
      textFiles(json, {
        eos_token: { content: "<tool>" },
        bos_token: "<|im_start|>",
        added_tokens_decoder: { [next]: { content: "<late>", special: false } },
      }),
    );
    expect(plain.isSpecial(plain.idOf("<tool>")!)).toBe(false);
    expect(tokenizer.isSpecial(tokenizer.idOf("<tool>")!)).toBe(true);
    expect(tokenizer.eosTokenId).toBe(tokenizer.idOf("<tool>"));
    expect(tokenizer.specialTokens).toEqual({ eos_token: "<tool>", bos_token: "<|im_start|>" });
    expect(tokenizer.encode("a<late>b")).toEqual([97, next, 98]);
    expect(tokenizer.isSpecial(next)).toBe(false);
  });

  test("the id of end of sequence comes from generation_config.json when no token has the role", () => {
    const files = textFiles(readFixture("gpt2-style.json"));
    files.generationConfig = { eos_token_id: [558, 556] };
    files.modelConfig = { eos_token_id: 557 };
    expect(new HfTokenizer(files).eosTokenId).toBe(558);
    files.generationConfig = {};
    expect(new HfTokenizer(files).eosTokenId).toBe(557);
  });

  test("shown special tokens in a row appear as the vocabulary spells them when no spaces are wanted", () => {
    const tokenizer = load("llama-style");
    const pre = tokenizer.idOf("▁<pre>")!;
    const end = tokenizer.idOf("</s>")!;
    expect(tokenizer.decode([end, pre])).toBe("</s> <pre>");
    expect(tokenizer.decode([end, pre], { spacesBetweenSpecialTokens: false })).toBe("</s>▁<pre>");
  });
});

describe("added tokens are found as in Hugging Face's tokenizers", () => {
  const json = readFixture("gpt2-style.json") as JsonObject;
  const first = new HfTokenizer(textFiles(json)).vocabSize;
  const withTokens = (...added: JsonObject[]): HfTokenizer =>
    new HfTokenizer(
      textFiles({
        ...json,
        added_tokens: [
          ...(json.added_tokens as JsonObject[]),
          ...added.map((token, i) => ({ id: first + i, ...token })),
        ],
      }),
    );
  const found = (tokenizer: HfTokenizer, text: string): string => {
    const bytesOf = (id: number): Uint8Array => (id >= first ? encodeUtf8(`<${id - first}>`) : tokenizer.bytes(id));
    return decodeUtf8(Uint8Array.from(tokenizer.encode(text).flatMap((id) => [...bytesOf(id)])));
  };

  test("a single-word token does not match next to letters, digits or underscores", () => {
    const tokenizer = withTokens({ content: "[w]", single_word: true }, { content: "cat", single_word: true });
    expect(found(tokenizer, "a cat, cats concat cat")).toBe("a <1>, cats concat <1>");
    expect(found(tokenizer, "cat")).toBe("<1>");
    expect(found(tokenizer, "é[w] [w]_ ([w])")).toBe("é[w] [w]_ (<0>)");
  });

  test("lstrip and rstrip remove Unicode whitespace, but not a byte order mark", () => {
    const tokenizer = withTokens({ content: "[l]", lstrip: true }, { content: "[r]", rstrip: true });
    expect(found(tokenizer, "a \u0085\u3000[l]b")).toBe("a<0>b");
    expect(found(tokenizer, "a\ufeff[l]b")).toBe("a\ufeff<0>b");
    expect(found(tokenizer, "a[r]\u0085 b")).toBe("a<1>b");
    expect(found(tokenizer, "a[r]\ufeffb")).toBe("a<1>\ufeffb");
  });

  test("tokens of the raw text are found before those of the normalised text", () => {
    const tokenizer = withTokens({ content: "[a]", normalized: false }, { content: "x[a]", normalized: true });
    expect(found(tokenizer, "x[a]")).toBe("x<0>");
  });
});

test("no space mark is added after an added token of the normalised text", () => {
  const json = readFixture("metaspace-style.json") as JsonObject;
  const pre_tokenizer = { type: "Metaspace", replacement: "▁", prepend_scheme: "first", split: false };
  const id = new HfTokenizer(textFiles(json)).vocabSize;
  const added_tokens = [...(json.added_tokens as JsonObject[]), { id, content: "[n]", normalized: true }];
  const tokenizer = new HfTokenizer(textFiles({ ...json, normalizer: { type: "NFC" }, pre_tokenizer, added_tokens }));
  const [mark] = tokenizer.piece(tokenizer.encode("the")[0]!)!;
  expect(mark).toBe("▁");
  expect(tokenizer.encode("[n]the").slice(1)).not.toEqual(tokenizer.encode("the"));
});

test("fixture checkpoints: ids are byte values", async () => {
  const files = await readTextFiles(fileURLToPath(new URL("../../test/fixtures/llama", import.meta.url)));
  const tokenizer = new HfTokenizer(files);
  expect(tokenizer.encode("<s>hé</s>")).toEqual([1, 0x68, 0xc3, 0xa9, 2]);
  expect([tokenizer.vocabSize, tokenizer.eosTokenId]).toEqual([256, 2]);
});

test("a decoder that does not work token by token is refused at load time", () => {
  const json = { ...(readFixture("gpt2-style.json") as JsonObject), decoder: { type: "WordPiece", prefix: "##" } };
  expect(() => new HfTokenizer(textFiles(json))).toThrow(/unsupported kind \(WordPiece\)/);
});

test("a Unigram model is encoded by the library", () => {
  const pieces = ["<unk>", "▁", "a", "b", "ab", "▁ab", "c"];
  const tokenizer = new HfTokenizer(
    textFiles({
      added_tokens: [{ id: 0, content: "<unk>", special: true }],
      normalizer: null,
      pre_tokenizer: { type: "Metaspace", replacement: "▁", prepend_scheme: "always" },
      post_processor: null,
      decoder: { type: "Metaspace", replacement: "▁", prepend_scheme: "always" },
      model: { type: "Unigram", unk_id: 0, vocab: pieces.map((piece, i) => [piece, -i]) },
    }),
  );
  expect(tokenizer.encode("ab c")).toEqual([5, 1, 6]);
  expect(tokenizer.decode([5, 1, 6])).toBe("ab c");
});

describe("characters without a token", () => {
  // é is C3 A9, è is C3 A8
  const vocab = { "<unk>": 0, a: 1, b: 2, ab: 3, "<0xC3>": 4, "<0xA9>": 5 };
  const encoded = (model: JsonObject, texts: string[]) => {
    const bpe = { type: "BPE", vocab, merges: ["a b"], unk_token: "<unk>", byte_fallback: true, ...model };
    const tokenizer = new HfTokenizer(textFiles({ model: bpe, decoder: { type: "ByteFallback" } }));
    return texts.map((text) => tokenizer.encode(text));
  };

  test("become bytes if all their bytes have tokens; those come before a pending unknown token", () => {
    expect(encoded({}, ["aéb", "è", "èéa", "aèéèb"])).toEqual([[1, 4, 5, 2], [0], [4, 5, 0, 1], [1, 4, 5, 0, 0, 2]]);
    expect(encoded({ byte_fallback: false }, ["aéb", "éé"])).toEqual([
      [1, 0, 2],
      [0, 0],
    ]);
  });

  test("become one token with fuse_unk, even with bytes between them", () => {
    expect(encoded({ fuse_unk: true }, ["èè", "aèéèb", "èaè"])).toEqual([[0], [1, 4, 5, 0, 2], [0, 1, 0]]);
  });

  test("are dropped without an unknown token, and their neighbours may merge", () => {
    expect(encoded({ unk_token: null }, ["aèb", "è", "aéb"])).toEqual([[3], [], [1, 4, 5, 2]]);
  });

  test("the unknown token may merge like any other", () => {
    const merges = ["<unk> a"];
    expect(encoded({ vocab: { ...vocab, "<unk>a": 6 }, merges }, ["èa", "aè"])).toEqual([[6], [1, 0]]);
  });

  test("are handled in byte-level vocabularies that lack bytes", () => {
    const model = { type: "BPE", vocab: { "<unk>": 0, a: 1, b: 2, ab: 3 }, merges: ["a b"] };
    const byteLevel = { type: "ByteLevel", add_prefix_space: false, use_regex: false };
    const ids = (more: JsonObject) =>
      new HfTokenizer(textFiles({ model: { ...model, ...more }, pre_tokenizer: byteLevel, decoder: byteLevel })).encode(
        "aéb",
      );
    expect(ids({})).toEqual([3]);
    expect(ids({ unk_token: "<unk>" })).toEqual([1, 0, 0, 2]);
    expect(ids({ unk_token: "<unk>", fuse_unk: true })).toEqual([1, 0, 2]);
  });
});

const realModel = process.env.FLYWHEEL_TEST_MODEL;

needing(
  need(
    "FLYWHEEL_TEST_MODEL, a folder with reference.json",
    Boolean(realModel) && existsSync(`${realModel}/reference.json`),
  ),
).it("a real checkpoint: prompts and greedy texts", async () => {
  const tokenizer = new HfTokenizer(await readTextFiles(realModel!));
  const reference = JSON.parse(readFileSync(`${realModel}/reference.json`, "utf8"));
  for (const { prompt, input_ids, greedy_ids, greedy_text } of reference.cases) {
    expect(tokenizer.encode(prompt)).toEqual(input_ids);
    expect(tokenizer.decode(input_ids)).toBe(prompt);
    expect(tokenizer.decode(greedy_ids)).toBe(greedy_text);
  }
});

test("with a limit, the rest of the text is not read", () => {
  const tokenizer = load("gpt2-style");
  const text = "a b ".repeat(1000);
  expect(tokenizer.encode(text, { maxTokens: 10 }).length).toBeLessThan(20);
});
