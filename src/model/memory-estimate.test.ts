// Memory of models that people know, from the numbers in their public configurations. Nothing was downloaded. The table in
// docs/guides/serving.md is made of these.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { bytesText, countText } from "../system/number-text.ts";
import { parseModelConfig } from "./checkpoint/model-config.ts";
import { estimateMemory } from "./memory-estimate.ts";

interface Shape {
  type: string;
  vocabulary: number;
  hidden: number;
  inner: number;
  layers: number;
  heads: number;
  kvHeads: number;
  headDim?: number;
  positions: number;
  tied: boolean;
}

/** As their config.json files say it. `millions`: parameters as their authors count them. */
const KNOWN: Record<string, Shape & { millions: number }> = {
  "HuggingFaceTB/SmolLM2-135M-Instruct": {
    ...{ type: "llama", vocabulary: 49152, hidden: 576, inner: 1536, layers: 30, heads: 9, kvHeads: 3 },
    ...{ positions: 8192, tied: true, millions: 135 },
  },
  "HuggingFaceTB/SmolLM2-1.7B-Instruct": {
    ...{ type: "llama", vocabulary: 49152, hidden: 2048, inner: 8192, layers: 24, heads: 32, kvHeads: 32 },
    ...{ positions: 8192, tied: true, millions: 1711 },
  },
  "Qwen/Qwen2.5-0.5B-Instruct": {
    ...{ type: "qwen2", vocabulary: 151936, hidden: 896, inner: 4864, layers: 24, heads: 14, kvHeads: 2 },
    ...{ positions: 32768, tied: true, millions: 494 },
  },
  "Qwen/Qwen2.5-1.5B-Instruct": {
    ...{ type: "qwen2", vocabulary: 151936, hidden: 1536, inner: 8960, layers: 28, heads: 12, kvHeads: 2 },
    ...{ positions: 32768, tied: true, millions: 1544 },
  },
  "Qwen/Qwen2.5-7B-Instruct": {
    ...{ type: "qwen2", vocabulary: 152064, hidden: 3584, inner: 18944, layers: 28, heads: 28, kvHeads: 4 },
    ...{ positions: 32768, tied: false, millions: 7616 },
  },
  "Qwen/Qwen3-0.6B": {
    ...{ type: "qwen3", vocabulary: 151936, hidden: 1024, inner: 3072, layers: 28, heads: 16, kvHeads: 8 },
    ...{ headDim: 128, positions: 40960, tied: true, millions: 596 },
  },
  "Qwen/Qwen3-4B": {
    ...{ type: "qwen3", vocabulary: 151936, hidden: 2560, inner: 9728, layers: 36, heads: 32, kvHeads: 8 },
    ...{ headDim: 128, positions: 40960, tied: true, millions: 4022 },
  },
  "TinyLlama/TinyLlama-1.1B-Chat-v1.0": {
    ...{ type: "llama", vocabulary: 32000, hidden: 2048, inner: 5632, layers: 22, heads: 32, kvHeads: 4 },
    ...{ positions: 2048, tied: false, millions: 1100 },
  },
  "meta-llama/Llama-3.2-1B-Instruct": {
    ...{ type: "llama", vocabulary: 128256, hidden: 2048, inner: 8192, layers: 16, heads: 32, kvHeads: 8 },
    ...{ headDim: 64, positions: 131072, tied: true, millions: 1236 },
  },
  "mistralai/Mistral-7B-Instruct-v0.3": {
    ...{ type: "mistral", vocabulary: 32768, hidden: 4096, inner: 14336, layers: 32, heads: 32, kvHeads: 8 },
    ...{ positions: 32768, tied: false, millions: 7248 },
  },
};

function configOf(name: string) {
  const shape = KNOWN[name]!;
  const architecture = { llama: "Llama", qwen2: "Qwen2", qwen3: "Qwen3", mistral: "Mistral" }[shape.type];
  return parseModelConfig(`${name}/config.json`, {
    model_type: shape.type,
    architectures: [`${architecture}ForCausalLM`],
    vocab_size: shape.vocabulary,
    hidden_size: shape.hidden,
    intermediate_size: shape.inner,
    num_hidden_layers: shape.layers,
    num_attention_heads: shape.heads,
    num_key_value_heads: shape.kvHeads,
    ...(shape.headDim === undefined ? {} : { head_dim: shape.headDim }),
    max_position_embeddings: shape.positions,
    tie_word_embeddings: shape.tied,
    hidden_act: "silu",
    rms_norm_eps: 1e-5,
    rope_theta: 10000,
  });
}

it.each(Object.keys(KNOWN))("%s has as many parameters as its authors say", (name) => {
  const { parameters } = estimateMemory(configOf(name), "int8");
  expect(Math.abs(parameters / 1e6 / KNOWN[name]!.millions - 1)).toBeLessThan(0.005);
});

it("counts every byte of a model by hand", () => {
  const config = configOf("HuggingFaceTB/SmolLM2-135M-Instruct");
  const linears = 30 * (576 * (576 + 192 + 192 + 576) + 3 * 576 * 1536);
  const outputs = 30 * (576 + 192 + 192 + 576 + 1536 + 1536 + 576) + 49152;
  const [embedding, norms] = [49152 * 576, (2 * 30 + 1) * 576];
  expect(estimateMemory(config, "int8")).toEqual({
    parameters: linears + embedding + norms,
    weightBytes: linears + embedding + 4 * outputs + 2 * embedding + 4 * norms,
    cacheBytesPerToken: 2 * 30 * 3 * 64 * 4,
  });
  expect(estimateMemory(config, "float32", 4).weightBytes).toBe(4 * (linears + 2 * embedding + norms));
  expect(estimateMemory(config, "int4").weightBytes).toBe(0.625 * (linears + embedding) + 2 * embedding + 4 * norms);
});

it("the table of the guide is made of these numbers", () => {
  const guide = readFileSync(new URL("../../docs/guides/serving.md", import.meta.url), "utf8");
  for (const name of Object.keys(KNOWN)) {
    const config = configOf(name);
    const { parameters, cacheBytesPerToken } = estimateMemory(config, "int8");
    const weights = (["float32", "int8", "int4"] as const).map((type) =>
      bytesText(estimateMemory(config, type).weightBytes),
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
