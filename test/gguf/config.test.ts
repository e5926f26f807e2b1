// What the metadata of a GGUF file say about the model, besides its shape.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import type { GgufValue } from "../../bench/models/gguf.ts";
import { isGguf } from "../../src/model/checkpoint/checkpoint-file.ts";
import { readGenerationConfig, readServedConfig } from "../../src/model/checkpoint/config-files.ts";
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { fixtureFolder } from "../reference/runner-driver.ts";
import { writeAsGguf } from "./write-fixture.ts";

const scratch = mkdtempSync(join(tmpdir(), "gguf-config-"));
afterAll(() => rmSync(scratch, { recursive: true }));

const string = (value: string): GgufValue => ({ type: "string", value });
const uint32 = (value: number): GgufValue => ({ type: "uint32", value });
const float32 = (value: number): GgufValue => ({ type: "float32", value });
let files = 0;

function written(entries: Record<string, GgufValue>): string {
  return writeAsGguf(fixtureFolder("qwen2"), join(scratch, `${files++}.gguf`), "f32", entries);
}

function rope(entries: Record<string, GgufValue>) {
  return readModelConfig(written(entries)).layers[0]!.rope;
}

it("states how rotary frequencies are scaled", () => {
  const [type, factor] = ["qwen2.rope.scaling.type", "qwen2.rope.scaling.factor"];
  expect(rope({})).toMatchObject({ theta: 10_000, scaling: null });
  expect(rope({ [type]: string("none") })).toMatchObject({ scaling: null });
  expect(rope({ [type]: string("linear"), [factor]: float32(4) })).toMatchObject({
    scaling: { type: "linear", factor: 4 },
  });
  expect(rope({ "qwen2.rope.scale_linear": float32(4) })).toMatchObject({ scaling: { type: "linear", factor: 4 } });
  const original = { "qwen2.rope.scaling.original_context_length": uint32(128) };
  expect(rope({ [type]: string("yarn"), [factor]: float32(4), ...original })).toMatchObject({
    scaling: { type: "yarn", factor: 4, originalMaxPositions: 128, betaFast: 32, betaSlow: 1 },
  });
  expect(() => rope({ [type]: string("new"), [factor]: float32(4) })).toThrow(/rope_type "new" is not supported/);
});

it("may repeat a number for every layer, if it is the same", () => {
  const heads = (value: number[]) => written({ "qwen2.attention.head_count_kv": { type: "int32s", value } });
  expect(readModelConfig(heads([2, 2])).numKvHeads).toBe(2);
  expect(() => readModelConfig(heads([2, 1]))).toThrow(/head_count_kv in its metadata must be one positive integer/);
});

it("refuses heads of two sizes, and heads that rotate in part", () => {
  const values = written({ "qwen2.attention.value_length": uint32(8) });
  expect(() => readModelConfig(values)).toThrow(/16 dimensions for keys and 8 for values/);
  expect(() => readModelConfig(written({ "qwen2.rope.dimension_count": uint32(8) }))).toThrow(/partial_rotary_factor/);
});

it("ends replies with the tokens that it names, and with those that its texts give away", () => {
  const tokens = Array.from({ length: 256 }, (_, id) => `t${id}`);
  for (const [id, text] of [
    [5, "<|im_end|>"],
    [6, "<end_of_turn>"],
    [7, "</s>"],
  ] as const)
    tokens[id] = text;
  const kinds = tokens.map((_, id) => (id === 5 || id === 6 ? 3 : 1));
  const path = written({
    "tokenizer.ggml.tokens": { type: "strings", value: tokens },
    "tokenizer.ggml.token_type": { type: "int32s", value: kinds },
    "tokenizer.ggml.eos_token_id": uint32(9),
    "tokenizer.ggml.eot_token_id": uint32(6),
  });
  // Number 7 is a plain piece, so it is text.
  expect(readModelConfig(path).eosTokenIds).toEqual([9, 6, 5]);
  expect(readServedConfig(path)).toEqual({ vocabSize: 256, eosTokenIds: [9, 6, 5] });
});

it("recommends sampling values", () => {
  const path = written({
    "general.sampling.temp": float32(0.5),
    "general.sampling.top_k": { type: "uint32", value: 20 },
  });
  expect(readGenerationConfig(path)).toMatchObject({ temperature: 0.5, topK: 20, topP: null, eosTokenIds: null });
});

it("is told apart from folders and hub names", () => {
  expect(["x/model.gguf", "MODEL.GGUF", written({})].map(isGguf)).toEqual([true, true, true]);
  expect(["org/name", scratch, "a\0.gguf", ""].map(isGguf)).toEqual([false, false, false, false]);
});
