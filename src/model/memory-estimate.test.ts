// Memory of models that people know, from the numbers in their public configurations. Nothing was downloaded. The table in
// docs/guides/models.md is made of these.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { fixtureFolder } from "../../test/reference/runner-driver.ts";
import type { JsonObject } from "../json/json.ts";
import { bytesText, countText } from "../system/text.ts";
import { parseModelConfig, readModelConfig } from "./checkpoint/model-config.ts";
import { estimateMemory } from "./memory-estimate.ts";

/** What is the same in all of them. */
const COMMON = { hidden_act: "silu", torch_dtype: "bfloat16" };
const LLAMA = { ...COMMON, architectures: ["LlamaForCausalLM"], model_type: "llama", rms_norm_eps: 1e-5 };
const QWEN2 = {
  ...{ ...COMMON, architectures: ["Qwen2ForCausalLM"], model_type: "qwen2", rms_norm_eps: 1e-6, rope_theta: 1e6 },
  ...{ max_position_embeddings: 32768, use_sliding_window: false },
};
const QWEN3 = {
  ...{ ...COMMON, architectures: ["Qwen3ForCausalLM"], model_type: "qwen3", rms_norm_eps: 1e-6, rope_theta: 1e6 },
  ...{ vocab_size: 151936, head_dim: 128, max_position_embeddings: 40960, attention_bias: false },
  ...{ tie_word_embeddings: true, use_sliding_window: false },
};

/** The fields of their config.json files that mean something here. `millions`: parameters as their authors count them. */
const KNOWN: Record<string, { millions: number; config: Record<string, unknown> }> = {
  "HuggingFaceTB/SmolLM2-135M-Instruct": {
    millions: 135,
    config: {
      ...{ ...LLAMA, vocab_size: 49152, hidden_size: 576, intermediate_size: 1536, num_hidden_layers: 30 },
      ...{ num_attention_heads: 9, num_key_value_heads: 3, max_position_embeddings: 8192, rope_theta: 1e5 },
      tie_word_embeddings: true,
    },
  },
  "HuggingFaceTB/SmolLM2-1.7B-Instruct": {
    millions: 1711,
    config: {
      ...{ ...LLAMA, vocab_size: 49152, hidden_size: 2048, intermediate_size: 8192, num_hidden_layers: 24 },
      ...{ num_attention_heads: 32, num_key_value_heads: 32, max_position_embeddings: 8192, rope_theta: 1.3e5 },
      tie_word_embeddings: true,
    },
  },
  "Qwen/Qwen2.5-0.5B-Instruct": {
    millions: 494,
    config: {
      ...{ ...QWEN2, vocab_size: 151936, hidden_size: 896, intermediate_size: 4864, num_hidden_layers: 24 },
      ...{ num_attention_heads: 14, num_key_value_heads: 2, tie_word_embeddings: true },
    },
  },
  "Qwen/Qwen2.5-1.5B-Instruct": {
    millions: 1544,
    config: {
      ...{ ...QWEN2, vocab_size: 151936, hidden_size: 1536, intermediate_size: 8960, num_hidden_layers: 28 },
      ...{ num_attention_heads: 12, num_key_value_heads: 2, tie_word_embeddings: true },
    },
  },
  "Qwen/Qwen2.5-7B-Instruct": {
    millions: 7616,
    config: {
      ...{ ...QWEN2, vocab_size: 152064, hidden_size: 3584, intermediate_size: 18944, num_hidden_layers: 28 },
      ...{ num_attention_heads: 28, num_key_value_heads: 4, tie_word_embeddings: false },
    },
  },
  "Qwen/Qwen3-0.6B": {
    millions: 596,
    config: {
      ...{ ...QWEN3, hidden_size: 1024, intermediate_size: 3072, num_hidden_layers: 28 },
      ...{ num_attention_heads: 16, num_key_value_heads: 8 },
    },
  },
  "Qwen/Qwen3-4B": {
    millions: 4022,
    config: {
      ...{ ...QWEN3, hidden_size: 2560, intermediate_size: 9728, num_hidden_layers: 36 },
      ...{ num_attention_heads: 32, num_key_value_heads: 8 },
    },
  },
  "TinyLlama/TinyLlama-1.1B-Chat-v1.0": {
    millions: 1100,
    config: {
      ...{ ...LLAMA, vocab_size: 32000, hidden_size: 2048, intermediate_size: 5632, num_hidden_layers: 22 },
      ...{ num_attention_heads: 32, num_key_value_heads: 4, max_position_embeddings: 2048, rope_theta: 1e4 },
      tie_word_embeddings: false,
    },
  },
  "meta-llama/Llama-3.2-1B-Instruct": {
    millions: 1236,
    config: {
      ...{ ...LLAMA, vocab_size: 128256, hidden_size: 2048, intermediate_size: 8192, num_hidden_layers: 16 },
      ...{ num_attention_heads: 32, num_key_value_heads: 8, head_dim: 64, max_position_embeddings: 131072 },
      ...{ rope_theta: 5e5, tie_word_embeddings: true },
      rope_scaling: {
        ...{ rope_type: "llama3", factor: 32, low_freq_factor: 1, high_freq_factor: 4 },
        original_max_position_embeddings: 8192,
      },
    },
  },
  "mistralai/Mistral-7B-Instruct-v0.3": {
    millions: 7248,
    config: {
      ...{ ...COMMON, architectures: ["MistralForCausalLM"], model_type: "mistral", rms_norm_eps: 1e-5 },
      ...{ vocab_size: 32768, hidden_size: 4096, intermediate_size: 14336, num_hidden_layers: 32 },
      ...{ num_attention_heads: 32, num_key_value_heads: 8, max_position_embeddings: 32768, rope_theta: 1e6 },
      ...{ sliding_window: null, tie_word_embeddings: false },
    },
  },
};

const configOf = (name: string) => parseModelConfig(`${name}/config.json`, KNOWN[name]!.config as JsonObject);

it.each(Object.keys(KNOWN))("%s has as many parameters as its authors say", (name) => {
  const { parameters } = estimateMemory(configOf(name), "int8", "float16");
  expect(Math.abs(parameters / 1e6 / KNOWN[name]!.millions - 1)).toBeLessThan(0.005);
});

it("counts every byte of a model by hand", () => {
  const config = configOf("HuggingFaceTB/SmolLM2-135M-Instruct");
  const linears = 30 * (576 * (576 + 192 + 192 + 576) + 3 * 576 * 1536);
  const outputs = 30 * (576 + 192 + 192 + 576 + 1536 + 1536 + 576);
  const [embedding, norms] = [49152 * 576, (2 * 30 + 1) * 576];
  const head = embedding + 4 * 49152;
  const mapBytes = linears + 4 * outputs + head;
  expect(estimateMemory(config, "int8", "float32").cacheBytesPerToken).toBe(2 * 30 * 3 * 64 * 4);
  expect(estimateMemory(config, "int8", "float16")).toEqual({
    parameters: linears + embedding + norms,
    weightBytes: mapBytes + 2 * embedding + 4 * norms,
    mapBytes,
    cacheBytesPerToken: 2 * 30 * 3 * 64 * 2,
    stepBytes: 512 * 4 * (6 * 576 + 4 * 1536),
  });
  // 16 threads compute twice as much of a prompt at once.
  expect(estimateMemory(config, "int8", "float16", 2, 16).stepBytes).toBe(1024 * 4 * (6 * 576 + 4 * 1536));
  expect(estimateMemory(config, "float32", "float32", 4).weightBytes).toBe(4 * (linears + 2 * embedding + norms));
  // The head of an int4 model is int8.
  expect(estimateMemory(config, "int4", "float16").weightBytes).toBe(
    0.625 * linears + head + 2 * embedding + 4 * norms,
  );
});

it("counts what stays float32 in every type: routers and learned positions", () => {
  const routers = readModelConfig(fixtureFolder("qwen3-moe"));
  const [experts, sparse] = [routers.layers[0]!.experts!.count, routers.layers.filter((layer) => layer.experts).length];
  const without = (type: "float32" | "int8") =>
    estimateMemory(routers, type, "float32").weightBytes - estimateMemory(routers, type, "float32").mapBytes;
  expect(without("int8")).toBe(without("float32"));
  expect(without("int8")).toBeGreaterThan(4 * sparse * experts * routers.hiddenSize);
  const gpt2 = readModelConfig(fixtureFolder("gpt2"));
  const { weightBytes, mapBytes } = estimateMemory(gpt2, "int8", "float16");
  expect(weightBytes - mapBytes).toBeGreaterThan(4 * gpt2.maxPositions * gpt2.hiddenSize);
});

it("the table of the guide is made of these numbers", () => {
  const guide = readFileSync(new URL("../../docs/guides/models.md", import.meta.url), "utf8");
  for (const name of Object.keys(KNOWN)) {
    const config = configOf(name);
    const { parameters, cacheBytesPerToken } = estimateMemory(config, "int8", "float16");
    const weights = (["float32", "int8", "int4"] as const).map((type) =>
      bytesText(estimateMemory(config, type, "float16").weightBytes),
    );
    const cells = [
      `\`${name}\``,
      countText(parameters),
      bytesText(2 * parameters),
      ...weights,
      bytesText(1000 * cacheBytesPerToken),
    ];
    expect(guide).toContain(`| ${cells.join(" | ")} |`);
  }
});
