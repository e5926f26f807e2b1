import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../json/json.ts";
import { NORMS_AROUND, NORMS_BEFORE, SEPARATE_MAPS } from "../families/tensor-names.ts";
import { CheckpointError } from "./checkpoint-file.ts";
import { type ModelConfig, parseModelConfig, readModelConfig } from "./model-config.ts";

const parse = (json: JsonObject): ModelConfig => parseModelConfig("config.json", json);
const plain = (theta: number) => ({ theta, scaling: null, attentionFactor: 1 });
const windows = (config: ModelConfig) => config.layers.map((layer) => layer.window);

const small = {
  vocab_size: 100,
  hidden_size: 64,
  intermediate_size: 96,
  num_hidden_layers: 4,
  num_attention_heads: 4,
};

describe("the fixtures (transformers 5)", () => {
  const shared = {
    vocabSize: 256,
    hiddenSize: 64,
    intermediateSize: 96,
    numLayers: 2,
    numHeads: 4,
    numKvHeads: 2,
    headDim: 16,
    maxPositions: 512,
    oBias: false,
    mlpBias: false,
    logitSoftcap: null,
    eosTokenIds: [2],
    bosTokenId: 1,
    attentionScale: 0.25,
    attentionSoftcap: null,
    logitScale: 1,
    residualScale: 1,
    norm: "rms",
    norms: NORMS_BEFORE,
    mlp: "gated",
  };
  const llamaLike = {
    ...shared,
    qkvBias: false,
    qkNorm: "none",
    activation: "silu",
    normWeightOffset: 0,
    embeddingScale: 1,
  };
  const everywhere = { window: null, rope: plain(10_000), maps: SEPARATE_MAPS, experts: null };

  test.each<[string, object]>([
    ["llama", { ...llamaLike, normEps: 1e-5, tieWordEmbeddings: true, layers: [everywhere, everywhere] }],
    [
      "qwen2",
      { ...llamaLike, normEps: 1e-6, tieWordEmbeddings: true, qkvBias: true, layers: [everywhere, everywhere] },
    ],
    [
      "qwen3",
      {
        ...llamaLike,
        normEps: 1e-6,
        tieWordEmbeddings: false,
        qkNorm: "head",
        headDim: 24,
        attentionScale: 1 / Math.sqrt(24),
        layers: [everywhere, everywhere],
      },
    ],
    [
      "mistral",
      {
        ...llamaLike,
        normEps: 1e-5,
        tieWordEmbeddings: false,
        layers: [
          { window: 16, rope: plain(10_000), maps: SEPARATE_MAPS, experts: null },
          { window: 16, rope: plain(10_000), maps: SEPARATE_MAPS, experts: null },
        ],
      },
    ],
    [
      "gemma3",
      {
        ...shared,
        normEps: 1e-6,
        tieWordEmbeddings: true,
        qkvBias: false,
        qkNorm: "head",
        activation: "gelu_tanh",
        norms: NORMS_AROUND,
        normWeightOffset: 1,
        embeddingScale: 8,
        layers: [
          { window: 16, rope: plain(10_000), maps: SEPARATE_MAPS, experts: null },
          { window: null, rope: plain(1_000_000), maps: SEPARATE_MAPS, experts: null },
        ],
      },
    ],
  ])("%s", (family, expected) => {
    expect(readModelConfig(`test/fixtures/${family}`)).toEqual({ family, ...expected });
  });

  test("mistral: layer_types decide where there are any", () => {
    const json = JSON.parse(readFileSync("test/fixtures/mistral/config.json", "utf8"));
    const mixed = parse({ ...json, layer_types: ["full_attention", "sliding_attention"] });
    expect(mixed.layers.map(({ window }) => window)).toEqual([null, 16]);
  });

  test("llama3's scaled frequencies", () => {
    const config = readModelConfig("test/fixtures/llama3");
    expect(config).toMatchObject({ family: "llama", tieWordEmbeddings: false });
    const scaling = { type: "llama3", factor: 8, lowFreqFactor: 1, highFreqFactor: 4, originalMaxPositions: 64 };
    expect(config.layers[1]!.rope).toEqual({ theta: 500_000, scaling, attentionFactor: 1 });
  });
});

describe("two fields that describe RoPE", () => {
  const llama3 = { rope_type: "llama3", factor: 8, low_freq_factor: 1, high_freq_factor: 4, rope_theta: 5e5 };
  const base = { ...small, architectures: ["LlamaForCausalLM"] };

  test("an empty object counts as absent", () => {
    const config = parse({ ...base, rope_scaling: {}, rope_parameters: llama3 });
    expect(config.layers[0]!.rope).toMatchObject({ theta: 5e5, scaling: { type: "llama3" } });
  });

  test("the context before scaling may stand outside", () => {
    const config = parse({ ...base, rope_parameters: llama3, original_max_position_embeddings: 77 });
    expect(config.layers[0]!.rope!.scaling).toMatchObject({ originalMaxPositions: 77 });
  });
});

describe("the transformers-4 form", () => {
  test("llama: rope_theta beside rope_scaling, biases, defaults", () => {
    const config = parse({
      ...small,
      architectures: ["LlamaForCausalLM"],
      rope_theta: 500_000,
      rope_scaling: { type: "linear", factor: 2 },
      attention_bias: true,
      mlp_bias: true,
      torch_dtype: "bfloat16",
      eos_token_id: [7, 9, 7],
    });
    expect(config).toMatchObject({
      family: "llama",
      numKvHeads: 4,
      headDim: 16,
      maxPositions: 4096,
      qkvBias: true,
      oBias: true,
      mlpBias: true,
      tieWordEmbeddings: false,
      eosTokenIds: [7, 9],
      bosTokenId: 1,
    });
    const rope = { theta: 500_000, scaling: { type: "linear", factor: 2 }, attentionFactor: 1 };
    expect(config.layers).toEqual(Array(4).fill({ window: null, rope, maps: SEPARATE_MAPS, experts: null }));
  });

  test("mistral: the window may be null, and is 4096 when left out", () => {
    const mistral = { ...small, model_type: "mistral", num_key_value_heads: 2 };
    expect(windows(parse({ ...mistral, sliding_window: null }))).toEqual([null, null, null, null]);
    expect(windows(parse(mistral))).toEqual([4096, 4096, 4096, 4096]);
  });

  test("qwen2: windows only when switched on, from max_window_layers on", () => {
    const qwen = { ...small, model_type: "qwen2", num_key_value_heads: 2, sliding_window: 32, max_window_layers: 3 };
    expect(windows(parse(qwen))).toEqual([null, null, null, null]);
    expect(windows(parse({ ...qwen, use_sliding_window: true }))).toEqual([null, null, null, 32]);
    expect(windows(parse({ ...qwen, use_sliding_window: true, max_window_layers: 28 }))).toEqual([
      null,
      null,
      null,
      null,
    ]);
    expect(parse(qwen)).toMatchObject({ eosTokenIds: [], bosTokenId: null });
  });

  test("qwen3: the head size is 128 when left out, layer_types decide", () => {
    const types = ["full_attention", "sliding_attention", "full_attention", "sliding_attention"];
    const json = { ...small, model_type: "qwen3", num_key_value_heads: 2, use_sliding_window: true, sliding_window: 8 };
    const config = parse({ ...json, layer_types: types });
    expect(config.headDim).toBe(128);
    expect(windows(config)).toEqual([null, 8, null, 8]);
  });

  test("gemma3: every sixth layer is full, with the scaled base; the others have their own", () => {
    const config = parse({
      ...small,
      num_hidden_layers: 7,
      model_type: "gemma3_text",
      num_key_value_heads: 1,
      sliding_window: 512,
      sliding_window_pattern: 6,
      rope_theta: 2_000_000,
      rope_local_base_freq: 20_000,
      rope_scaling: { rope_type: "linear", factor: 8 },
      query_pre_attn_scalar: 100,
      final_logit_softcapping: 30,
    });
    expect(windows(config)).toEqual([512, 512, 512, 512, 512, null, 512]);
    expect(config.layers[0]!.rope).toEqual(plain(20_000));
    const scaled = { theta: 2_000_000, scaling: { type: "linear", factor: 8 }, attentionFactor: 1 };
    expect(config.layers[5]!.rope).toEqual(scaled);
    expect(config).toMatchObject({ attentionScale: 0.1, logitSoftcap: 30, headDim: 256, tieWordEmbeddings: true });
  });

  test("gemma3 with vision: the text part, with the defaults its files rely on", () => {
    const config = parse({
      architectures: ["Gemma3ForConditionalGeneration"],
      model_type: "gemma3",
      eos_token_id: [1, 106],
      text_config: {
        model_type: "gemma3_text",
        hidden_size: 2560,
        intermediate_size: 10_240,
        num_hidden_layers: 34,
        rope_scaling: { factor: 8, rope_type: "linear" },
        sliding_window: 1024,
      },
      vision_config: { hidden_size: 1152 },
    });
    expect(config).toMatchObject({
      vocabSize: 262_208,
      numHeads: 8,
      numKvHeads: 4,
      headDim: 256,
      eosTokenIds: [1, 106],
    });
    expect(config.layers.filter((layer) => layer.window === null).length).toBe(5);
    expect(config.layers[5]!.rope!.scaling).toEqual({ type: "linear", factor: 8 });
    expect(config.layers[4]!.rope).toEqual(plain(10_000));
  });
});

test("how far each kind of rotary scaling reaches", () => {
  const reach = (rope_scaling: object) =>
    parse({ ...small, model_type: "llama", max_position_embeddings: 1000, rope_scaling }).maxPositions;
  expect(reach({ type: "default" })).toBe(1000);
  expect(reach({ type: "linear", factor: 2.5 })).toBe(2500);
  expect(reach({ type: "yarn", factor: 4, original_max_position_embeddings: 500 })).toBe(2000);
  expect(reach({ rope_type: "llama3", factor: 8, low_freq_factor: 1, high_freq_factor: 4 })).toBe(1000);
  const gemma = { ...small, model_type: "gemma3_text", num_key_value_heads: 1, max_position_embeddings: 1000 };
  expect(parse({ ...gemma, rope_scaling: { rope_type: "linear", factor: 8 } }).maxPositions).toBe(1000);
});

describe("refused configurations", () => {
  const llama = { ...small, model_type: "llama" };
  const gemma = { ...small, model_type: "gemma3_text", num_key_value_heads: 1 };
  test.each<[JsonObject, RegExp]>([
    [
      { model_type: "mamba" },
      /model_type "mamba" is not supported \(supported model types: llama, mistral, qwen2, .*gemma3, .*olmo2/,
    ],
    [{ architectures: ["MambaForCausalLM"] }, /architectures \["MambaForCausalLM"\] is not supported/],
    [{}, /is not supported/],
    [
      { ...llama, architectures: ["LlamaForSequenceClassification"] },
      /LlamaForSequenceClassification is not a language/,
    ],
    [{ ...llama, hidden_size: undefined }, /hidden_size must be a positive integer, it is missing/],
    [{ ...llama, hidden_size: 64.5 }, /hidden_size must be a positive integer, found 64.5/],
    [{ ...llama, num_hidden_layers: 1e9 }, /num_hidden_layers must be at most 4096/],
    [{ ...llama, num_key_value_heads: 3 }, /num_key_value_heads must be a divisor of the 4 heads, found 3/],
    [{ ...llama, num_attention_heads: 3 }, /head size must be an even integer, found 21.3/],
    [
      { ...llama, hidden_act: "gelu" },
      /hidden_act must be one of silu, swish, gelu_pytorch_tanh, gelu_new, found "gelu"/,
    ],
    [{ ...llama, hidden_act: "constructor" }, /hidden_act must be one of/],
    [{ ...llama, rope_scaling: { rope_type: "dynamic", factor: 2 } }, /rope_type "dynamic" is not supported/],
    [
      { ...llama, max_position_embeddings: 512, rope_scaling: { rope_type: "linear", factor: 0.001 } },
      /linear rotary scaling by 0.001 makes 512 positions 0/,
    ],
    [
      { ...llama, rope_scaling: { rope_type: "yarn", factor: 1e9, original_max_position_embeddings: 64 } },
      /yarn rotary scaling by 1000000000 makes 64 positions 64000000000/,
    ],
    [{ ...llama, partial_rotary_factor: 0.5 }, /partial_rotary_factor must be 1/],
    [{ ...llama, quantization_config: { quant_method: "gptq" } }, /quantised checkpoints are not supported/],
    [{ ...llama, eos_token_id: [1, "2"] }, /eos_token_id must be a token id or a list of token ids/],
    [{ ...llama, tie_word_embeddings: "yes" }, /tie_word_embeddings must be true or false, found "yes"/],
    [{ ...gemma, attn_logit_softcapping: 50 }, /attn_logit_softcapping must be null/],
    [{ ...gemma, use_bidirectional_attention: true }, /use_bidirectional_attention must be false/],
    [{ ...gemma, layer_types: ["full_attention"] }, /layer_types must be a list of 4, one per layer/],
    [{ ...gemma, layer_types: Array(4).fill("chunked_attention") }, /not "chunked_attention"/],
    [{ ...gemma, rope_parameters: { rope_theta: 1 } }, /rope_parameters must be an object with full_attention/],
    [
      { ...small, model_type: "qwen2", num_key_value_heads: 2, layer_types: Array(4).fill("sliding_attention") },
      /layer_types must be "full_attention" in every layer, as sliding_window is null or switched off/,
    ],
  ])("%#", (json, message) => {
    expect(() => parse(json)).toThrow(message);
    expect(() => parse(json)).toThrow(CheckpointError);
  });

  test("any values in any known field: a configuration or a CheckpointError", () => {
    const keys = [
      ...Object.keys(small),
      "head_dim",
      "rope_parameters",
      "rope_scaling",
      "layer_types",
      "sliding_window",
    ];
    const overrides = fc.dictionary(fc.constantFrom(...keys), fc.oneof(fc.integer(), fc.jsonValue()));
    fc.assert(
      fc.property(fc.constantFrom("llama", "mistral", "qwen2", "qwen3", "gemma3"), overrides, (model_type, json) => {
        try {
          expect(parse({ ...small, model_type, ...json }).layers.length).toBeGreaterThan(0);
        } catch (error) {
          expect(error).toBeInstanceOf(CheckpointError);
        }
      }),
      { numRuns: 500 },
    );
  });
});
