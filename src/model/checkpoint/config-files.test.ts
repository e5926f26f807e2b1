import { describe, expect, test } from "vitest";
import { CheckpointError } from "./checkpoint-file.ts";
import { GENERATION_FIELDS, parseGenerationConfig, readGenerationConfig } from "./config-files.ts";

const nothing = {
  temperature: null,
  topP: null,
  topK: null,
  minP: null,
  repetitionPenalty: null,
  maxNewTokens: null,
  eosTokenIds: null,
};
const parse = (json: Record<string, unknown>) => parseGenerationConfig("generation_config.json", json);

test("no file means no defaults", () => {
  expect(readGenerationConfig("test/fixtures/llama")).toEqual(nothing);
});

test("what the file says is kept, whatever do_sample says", () => {
  const json = {
    do_sample: false,
    temperature: 0.7,
    top_p: 0.8,
    top_k: 20,
    min_p: 0.05,
    repetition_penalty: 1.05,
    max_new_tokens: 2048,
    eos_token_id: [151_645, 151_643],
    pad_token_id: 151_643,
    transformers_version: "4.57.1",
  };
  expect(parse(json)).toEqual({
    temperature: 0.7,
    topP: 0.8,
    topK: 20,
    minP: 0.05,
    repetitionPenalty: 1.05,
    maxNewTokens: 2048,
    eosTokenIds: [151_645, 151_643],
  });
});

test("one id, nulls, zero temperature, and top_k -1 for off", () => {
  const parsed = parse({ eos_token_id: 2, temperature: 0, top_p: null, top_k: -1 });
  expect(parsed).toEqual({ ...nothing, eosTokenIds: [2], temperature: 0, topK: 0 });
});

describe("refused", () => {
  test.each(GENERATION_FIELDS)("%s that is no number", (name) => {
    expect(() => parse({ [name]: "much" })).toThrow(name);
  });

  test.each<[Record<string, unknown>, RegExp]>([
    [{ temperature: -1 }, /temperature must be a number in 0\.\.1000000, found -1/],
    [{ temperature: "hot" }, /temperature must be/],
    [{ top_p: 0 }, /top_p must be a positive number/],
    [{ top_p: 1.5 }, /top_p must be a number in \(0, 1\]/],
    [{ top_k: 2.5 }, /top_k must be an integer/],
    [{ min_p: 2 }, /min_p must be/],
    [{ repetition_penalty: 0 }, /repetition_penalty must be a positive number/],
    [{ max_new_tokens: 0 }, /max_new_tokens must be a positive integer/],
    [{ eos_token_id: [-1] }, /eos_token_id must be a token id or a list/],
    [{ eos_token_id: { a: 1 } }, /eos_token_id must be/],
  ])("%j", (json, message) => {
    expect(() => parse(json)).toThrow(message);
    expect(() => parse(json)).toThrow(CheckpointError);
  });
});
