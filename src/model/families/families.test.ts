// What the families make of configurations as they are published, most of them in the form of transformers 4.

import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../json/json.ts";
import { parseModelConfig } from "../checkpoint/model-config.ts";
import { FUSED_MAPS, NORMS_AFTER, NORMS_AROUND } from "./tensor-names.ts";

const parse = (json: JsonObject) => parseModelConfig("config.json", json);
const sizes = {
  ...{ vocab_size: 1000, hidden_size: 64, intermediate_size: 96, num_hidden_layers: 4 },
  ...{ num_attention_heads: 4, num_key_value_heads: 2 },
};

describe("olmo2", () => {
  const olmo = { ...sizes, model_type: "olmo2", architectures: ["Olmo2ForCausalLM"], rope_theta: 500_000 };

  test("norms after the blocks, queries and keys normalised over all heads", () => {
    const config = parse({ ...olmo, rms_norm_eps: 1e-6, attention_bias: false });
    expect(config).toMatchObject({ norms: NORMS_AFTER, qkNorm: "width", normEps: 1e-6, qkvBias: false, oBias: false });
    expect(config.layers[0]).toMatchObject({ window: null, rope: { theta: 500_000 } });
    expect(parse({ ...olmo, attention_bias: true })).toMatchObject({ qkvBias: true, oBias: true, mlpBias: false });
  });
});

describe("granite", () => {
  test("the multipliers of granite-3.3-2b", () => {
    const config = parse({
      ...sizes,
      ...{ model_type: "granite", attention_multiplier: 0.015625, embedding_multiplier: 12 },
      ...{ residual_multiplier: 0.22, logits_scaling: 8, rope_theta: 10_000_000, tie_word_embeddings: true },
    });
    expect(config).toMatchObject({
      ...{ attentionScale: 0.015625, embeddingScale: 12, residualScale: 0.22, logitScale: 0.125 },
    });
  });

  test("without them all are 1, also that of attention", () => {
    expect(parse({ ...sizes, model_type: "granite" })).toMatchObject({ attentionScale: 1, logitScale: 1 });
  });
});

describe("smollm3", () => {
  const smol = { ...sizes, model_type: "smollm3", rope_theta: 5_000_000 };
  const rotating = (json: JsonObject) => parse(json).layers.map(({ rope }) => rope !== null);

  test("layers without rotation: every fourth, or as listed", () => {
    expect(rotating(smol)).toEqual([true, true, true, false]);
    expect(rotating({ ...smol, no_rope_layer_interval: 2 })).toEqual([true, false, true, false]);
    expect(rotating({ ...smol, no_rope_layers: [0, 1, 1, 1] })).toEqual([false, true, true, true]);
    expect(() => parse({ ...smol, no_rope_layers: [1, 1] })).toThrow(/no_rope_layers must be a list of 4 numbers/);
    expect(() => parse({ ...smol, no_rope_layers: [1, 1, 1, 2] })).toThrow(/no_rope_layers must be/);
  });

  test("windows only if they are switched on", () => {
    expect(parse({ ...smol, sliding_window: 8 }).layers.map(({ window }) => window)).toEqual([null, null, null, null]);
    const on = { ...smol, sliding_window: 8, use_sliding_window: true };
    expect(parse(on).layers.map(({ window }) => window)).toEqual([null, null, null, 8]);
  });
});

describe("phi3", () => {
  const phi = { ...sizes, model_type: "phi3", architectures: ["Phi3ForCausalLM"], max_position_embeddings: 131_072 };
  const factors = { short_factor: Array(6).fill(1), long_factor: Array(6).fill(4) };

  test("Phi-3-mini-4k: fused maps, a window in every layer, plain rotation", () => {
    const config = parse({ ...phi, max_position_embeddings: 4096, sliding_window: 2047, rope_scaling: null });
    const rope = { theta: 10_000, scaling: null, attentionFactor: 1 };
    expect(config.layers).toEqual(Array(4).fill({ window: 2047, rope, maps: FUSED_MAPS, experts: null }));
  });

  test("Phi-4-mini: two lists of factors, three quarters of a head rotate, the context is the declared one", () => {
    const config = parse({
      ...phi,
      ...{ original_max_position_embeddings: 4096, partial_rotary_factor: 0.75, sliding_window: 262_144 },
      rope_scaling: { type: "longrope", ...factors },
    });
    expect(config.maxPositions).toBe(131_072);
    expect(config.layers[0]!.rope).toMatchObject({
      rotated: 12,
      scaling: { type: "longrope", originalMaxPositions: 4096, shortFactors: factors.short_factor },
    });
    expect(config.layers[0]!.rope!.attentionFactor).toBeCloseTo(1.1902, 4);
  });

  test("what it cannot do is refused", () => {
    const scaling = { ...phi, rope_scaling: { type: "longrope", ...factors } };
    expect(() => parse(scaling)).toThrow(/short_factor must be a list of 8/);
    expect(() => parse({ ...phi, partial_rotary_factor: 0.7 })).toThrow(/rotates 11 of 16 dimensions/);
    expect(() => parse({ ...phi, partial_rotary_factor: 1.5 })).toThrow(/must be at most 1/);
    expect(() => parse({ ...phi, attention_bias: true })).toThrow(/attention_bias must be false/);
    expect(() => parse({ ...phi, model_type: "llama", architectures: [], partial_rotary_factor: 0.5 })).toThrow(
      /partial_rotary_factor must be 1/,
    );
  });
});

describe("gemma2", () => {
  const gemma = { ...sizes, model_type: "gemma2", architectures: ["Gemma2ForCausalLM"], head_dim: 16 };

  test("gemma-2-2b: caps, scales, and a window in every other layer", () => {
    const config = parse({ ...gemma, query_pre_attn_scalar: 256, sliding_window: 32, hidden_act: "gelu_pytorch_tanh" });
    expect(config).toMatchObject({
      ...{ attentionSoftcap: 50, logitSoftcap: 30, attentionScale: 1 / 16, embeddingScale: 8 },
      ...{ norms: NORMS_AROUND, normWeightOffset: 1, qkNorm: "none", tieWordEmbeddings: true },
    });
    expect(config.layers.map(({ window }) => window)).toEqual([32, null, 32, null]);
  });

  test("caps may be null", () => {
    const off = { attn_logit_softcapping: null, final_logit_softcapping: null };
    expect(parse({ ...gemma, ...off })).toMatchObject({ attentionSoftcap: null, logitSoftcap: null });
  });
});

describe("gpt2", () => {
  const gpt = { model_type: "gpt2", vocab_size: 1000, n_embd: 64, n_head: 4, n_layer: 2, n_ctx: 1024, n_inner: null };

  test("its own words for sizes, learned positions, four times as wide inside", () => {
    const config = parse({ ...gpt, architectures: ["GPT2LMHeadModel"], attn_pdrop: 0.1, layer_norm_epsilon: 1e-4 });
    expect(config).toMatchObject({
      ...{ hiddenSize: 64, intermediateSize: 256, numHeads: 4, numKvHeads: 4, headDim: 16, maxPositions: 1024 },
      ...{ normEps: 1e-4, norm: "layer", mlp: "plain", activation: "gelu_tanh", tieWordEmbeddings: true },
    });
    expect(config.layers.map(({ rope }) => rope)).toEqual([null, null]);
    expect(parse({ ...gpt, n_inner: 100, scale_attn_weights: false })).toMatchObject({
      ...{ intermediateSize: 100, attentionScale: 1 },
    });
  });

  test("errors name the words of the file", () => {
    expect(() => parse({ ...gpt, n_embd: 0 })).toThrow(/n_embd must be a positive integer, found 0/);
    expect(() => parse({ ...gpt, activation_function: "relu" })).toThrow(/activation_function must be one of/);
    expect(() => parse({ ...gpt, scale_attn_by_inverse_layer_idx: true })).toThrow(/must be false/);
  });
});

describe("qwen3_moe", () => {
  const moe = {
    ...{ ...sizes, model_type: "qwen3_moe", head_dim: 16, num_experts: 8, num_experts_per_tok: 2 },
    ...{ moe_intermediate_size: 24, norm_topk_prob: true },
  };
  const sparse = (json: JsonObject) => parse(json).layers.map(({ experts }) => experts !== null);

  test("which layers have experts", () => {
    expect(sparse(moe)).toEqual([true, true, true, true]);
    expect(sparse({ ...moe, decoder_sparse_step: 2 })).toEqual([false, true, false, true]);
    expect(sparse({ ...moe, mlp_only_layers: [0, 3] })).toEqual([false, true, true, false]);
    expect(sparse({ ...moe, num_experts: 0 })).toEqual([false, false, false, false]);
  });

  test("layers with experts have no MLP, and adapters change their attention alone", () => {
    const { layers } = parse({ ...moe, mlp_only_layers: [0] });
    expect(layers[0]!.maps.gateUp).toEqual(["gate", "up"]);
    expect(layers[1]).toMatchObject({
      maps: { qkv: ["q", "k", "v"], o: ["o"], gateUp: [], down: [] },
      experts: { count: 8, perToken: 2, intermediateSize: 24, normalised: true },
    });
  });

  test("the name of transformers 5, and what makes no sense", () => {
    const { num_experts: _, ...rest } = moe;
    expect(parse({ ...rest, num_local_experts: 4 }).layers[0]!.experts!.count).toBe(4);
    expect(() => parse({ ...moe, num_experts_per_tok: 9 })).toThrow(
      /num_experts_per_tok must be at most the 8 experts/,
    );
    expect(() => parse({ ...moe, mlp_only_layers: ["0"] })).toThrow(/mlp_only_layers must be a list of whole numbers/);
  });
});
