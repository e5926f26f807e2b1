// Structured output over HTTP with SentencePiece vocabularies as real tokenizer.json files have them: BPE with byte fallback,
// Unigram with and without it, "▁" for spaces from a normalizer or a Metaspace stage. The model is noise, so that every
// legal token is likely.

import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { JsonObject } from "../../src/json/json.ts";
import { HfTokenizer } from "../../src/text/hf-tokenizer.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const SEEDS = 12;

const SPECIALS = ["<unk>", "<s>", "</s>"];
const ASCII = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).map((c) => (c === " " ? "▁" : c));
const WORDS =
  '▁the ▁a ▁yes yes ▁no no ▁{ {" "} ": ", " ▁" ": ▁1 10 20 true fal se null name age tags ▁Paris is ▁zu später ä ü ß é 漢 字 漢字 😀 ▁▁ ▁▁▁▁ SELECT ▁FROM';
const BYTES = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);

const added = SPECIALS.map((content, id) => ({
  id,
  content,
  special: true,
  normalized: false,
  single_word: false,
  lstrip: false,
  rstrip: false,
}));

/** A Unigram model: pieces with log-probabilities, in id order. */
function unigram(byteFallback: boolean): JsonObject {
  const pieces = [...new Set([...SPECIALS, ...(byteFallback ? BYTES : []), ...ASCII, "\n", "\t", ...WORDS.split(" ")])];
  const metaspace = { type: "Metaspace", replacement: "▁", prepend_scheme: "always", split: true };
  return {
    version: "1.0",
    added_tokens: added,
    normalizer: { type: "Sequence", normalizers: [{ type: "NFKC" }] },
    pre_tokenizer: metaspace,
    post_processor: null,
    decoder: byteFallback
      ? {
          type: "Sequence",
          decoders: [
            { type: "Replace", pattern: { String: "▁" }, content: " " },
            { type: "ByteFallback" },
            { type: "Fuse" },
            { type: "Strip", content: " ", start: 1, stop: 0 },
          ],
        }
      : metaspace,
    model: {
      type: "Unigram",
      unk_id: 0,
      byte_fallback: byteFallback,
      vocab: pieces.map((piece, id) => [piece, id < SPECIALS.length ? 0 : -2 - piece.length / 8 - id / 1000]),
    },
  };
}

const bpe = (name: string) =>
  JSON.parse(readFileSync(new URL(`../fixtures/tokenizers/${name}.json`, import.meta.url), "utf8")) as JsonObject;

function tokenizerOf(tokenizer: JsonObject): HfTokenizer {
  return new HfTokenizer({
    tokenizer,
    tokenizerConfig: { bos_token: "<s>", eos_token: "</s>", unk_token: "<unk>" },
    specialTokensMap: {},
    modelConfig: {},
    generationConfig: {},
    chatTemplates: new Map(),
  });
}

const schema = {
  type: "object",
  properties: {
    name: { type: "string", minLength: 1, maxLength: 8 },
    age: { type: "integer", minimum: 0, maximum: 130 },
    tags: { type: "array", items: { enum: ["a b", "später"] }, maxItems: 2 },
  },
  required: ["name", "age"],
  additionalProperties: false,
};
const isRecord = new Ajv2020({ strict: false }).compile(schema);
const choices = ["yes", "yes, 10", " yes", "später zu Paris", "a  b"];

const kinds: [string, Record<string, unknown>, (text: string) => boolean][] = [
  ["json", { json: schema }, (text) => isRecord(JSON.parse(text))],
  ["compact json", { json: schema, disable_any_whitespace: true }, (text) => isRecord(JSON.parse(text))],
  ["choice", { choice: choices }, (text) => choices.includes(text)],
  ["regex", { regex: "( ?[a-z]{1,5}){2,3}[äöü]?!" }, (text) => /^( ?[a-z]{1,5}){2,3}[äöü]?!$/.test(text)],
  [
    "grammar",
    { grammar: 'root ::= "(" e ")"\ne ::= n | e " + " n\nn ::= [0-9]{1,2}' },
    (text) => /^\(\d{1,2}( \+ \d{1,2})*\)$/.test(text),
  ],
];

describe.each([
  ["BPE with byte fallback, ▁ prepended by the normaliser", bpe("llama-style")],
  ["BPE with byte fallback, nothing prepended", bpe("gemma-style")],
  ["BPE with byte fallback and Metaspace", bpe("metaspace-style")],
  ["Unigram with byte fallback and Metaspace", unigram(true)],
  ["Unigram that cannot spell everything", unigram(false)],
])("%s", (_name, json) => {
  const tokenizer = tokenizerOf(json);
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer({ tokenizer });
  });
  afterAll(() => server.close());

  test("encodes and decodes text as a SentencePiece vocabulary", () => {
    expect(tokenizer.kind).toBe("sentencepiece");
    expect(tokenizer.eosTokenId).toBe(2);
    const ids = tokenizer.encode("yes später 10");
    expect(tokenizer.decode(ids).trimStart()).toBe("yes später 10");
    expect(ids).not.toContain(0);
  });

  test.each(kinds)("%s: output conforms, and streams to the same text", async (_kind, structured_outputs, conforms) => {
    let ended = 0;
    for (let seed = 0; seed < SEEDS; seed++) {
      const body = {
        messages: [{ role: "user", content: "go on" }],
        structured_outputs,
        temperature: 1.5,
        seed,
        max_tokens: 300,
        logprobs: true,
        return_token_ids: true,
      };
      const [reply, chunks] = await Promise.all([server.chat(body), server.stream(body)]);
      const [choice] = reply.choices;
      const text = choice.message.content;
      expect(chunks.map((chunk) => chunk.choices[0].delta.content ?? "").join("")).toBe(text);
      if (choice.finish_reason === "length") continue;
      ended++;
      expect(conforms(text), text).toBe(true);
      expect(choice.token_ids.at(-1)).toBe(tokenizer.eosTokenId);
      const bytes = choice.logprobs.content.slice(0, -1).flatMap((entry: { bytes: number[] }) => entry.bytes);
      expect(Buffer.from(bytes).toString()).toBe(text);
    }
    expect(ended).toBeGreaterThan(SEEDS / 2);
  });

  test("the constraint governs the first token even after a bare start token", async () => {
    for (let seed = 0; seed < 6; seed++) {
      const body = { prompt: [1], structured_outputs: { choice: [" yes", "  b"] }, seed, max_tokens: 20 };
      const reply = await (await server.post("/v1/completions", body)).json();
      expect([" yes", "  b"]).toContain(reply.choices[0].text);
    }
  });
});
