import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ByteTokenizer } from "../../../test/support/byte-tokenizer.ts";
import type { SharedFields } from "./fields.schema.ts";
import { loadSamplingDefaults, NEUTRAL_DEFAULTS, type SampledModel, toSamplingParams } from "./sampling.ts";

function folder(config: object | null): string {
  const path = mkdtempSync(join(tmpdir(), "flywheel-defaults-"));
  if (config !== null) writeFileSync(join(path, "generation_config.json"), JSON.stringify(config));
  return path;
}

const model = { temperature: 0.6, top_p: 0.95, max_new_tokens: 100, eos_token_id: [2, 3] };
const load = (generationConfig: string, override: Record<string, unknown> = {}, own: object | null = model) =>
  loadSamplingDefaults({ modelFolder: folder(own), configEosTokenIds: [7], generationConfig, override });

it("applies the operator's values over the model's file", () => {
  expect(load("auto")).toEqual({
    ...NEUTRAL_DEFAULTS,
    temperature: 0.6,
    topP: 0.95,
    maxNewTokens: 100,
    eosTokenIds: [2, 3],
  });
  expect(load("auto", { temperature: 0, top_k: 5 })).toMatchObject({ temperature: 0, topP: 0.95, topK: 5 });
  expect(load("auto", {}, null)).toEqual({ ...NEUTRAL_DEFAULTS, eosTokenIds: [7] });
});

it("keeps the model's end-of-sequence ids whichever file supplies the values", () => {
  expect(load("vllm")).toEqual({ ...NEUTRAL_DEFAULTS, eosTokenIds: [2, 3] });
  expect(load(folder({ temperature: 0.1 }))).toEqual({ ...NEUTRAL_DEFAULTS, temperature: 0.1, eosTokenIds: [2, 3] });
});

it("refuses invalid values", () => {
  expect(() => load("auto", { temperature: "hot" })).toThrow(/override-generation-config.*temperature/s);
});

const byteModel: SampledModel = {
  text: { tokenizer: new ByteTokenizer() },
  engine: { info: { vocabSize: 260 } },
  defaults: NEUTRAL_DEFAULTS,
};
const counts = { maxTokens: 10, logprobs: null, promptLogprobs: null };
const params = (body: SharedFields, { defaults = NEUTRAL_DEFAULTS, ...more } = {}) =>
  toSamplingParams(body, { ...byteModel, defaults }, { ...counts, ...more });

describe("toSamplingParams", () => {
  it("uses the model's defaults for absent and null fields, but not for 0", () => {
    const defaults = { ...NEUTRAL_DEFAULTS, temperature: 0.6, topP: 0.9, topK: 20, minP: 0.1, repetitionPenalty: 1.2 };
    expect(params({ temperature: null }, { defaults })).toMatchObject({
      temperature: 0.6,
      topP: 0.9,
      topK: 20,
      minP: 0.1,
      repetitionPenalty: 1.2,
    });
    expect(params({ temperature: 0, top_k: 0 }, { defaults })).toMatchObject({ temperature: 0, topK: 0 });
  });

  it("neutralises top-k, top-p and min-p when greedy and raises tiny temperatures", () => {
    expect(params({ temperature: 0, top_k: 5, top_p: 0.5, min_p: 0.5 })).toMatchObject({ topK: 0, topP: 1, minP: 0 });
    expect(params({ temperature: 0.001 }).temperature).toBe(0.01);
    expect(params({ temperature: 1, top_k: -1 }).topK).toBe(0);
  });

  it("separates end-of-sequence ids from stop ids", () => {
    const defaults = { ...NEUTRAL_DEFAULTS, eosTokenIds: [2, 5] };
    expect(params({ stop_token_ids: [7, 7, 2, 9999, -1] }, { defaults })).toMatchObject({
      eosTokenId: 2,
      stopTokenIds: [7, 2, 5],
      minTokensMask: [2, 5, 7],
    });
    expect(params({ stop_token_ids: [7], ignore_eos: true }, { defaults })).toMatchObject({
      stopTokenIds: [7],
      minTokensMask: [2, 5, 7],
      ignoreEos: true,
    });
  });

  it("clamps biases, removes duplicate allowed ids, and reads seeds and repetition", () => {
    expect(params({ logit_bias: { "5": 300, "259": -300 } }).logitBias).toEqual([
      [5, 100],
      [259, -100],
    ]);
    expect(params({ allowed_token_ids: [5, 5, 6] }).allowedTokenIds).toEqual([5, 6]);
    expect(() => params({ allowed_token_ids: [258] })).toThrow(/258/);
    expect([params({ seed: -1n }).seed, params({ seed: null }).seed, params({ seed: 0n }).seed]).toEqual([
      null,
      null,
      0n,
    ]);
    expect(params({ repetition_detection: {} }).repetitionDetection).toBeNull();
  });

  it("treats two spellings of an id in logit_bias as one bias", () => {
    expect(params({ logit_bias: { "5": 100, "+5": 90, " 05": 80 } }).logitBias).toEqual([[5, 80]]);
  });

  it("names all bad logit_bias keys and the vocabulary size", () => {
    expect(() => params({ logit_bias: { a: 1, "1.5": 1, "3": 1 } })).toThrow(/a, 1\.5/);
    expect(() => params({ logit_bias: { "260": 1 } })).toThrow(/260.*260/);
  });
});
