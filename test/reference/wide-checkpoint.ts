// A checkpoint of one layer and a small vocabulary in the widths of a real model, with random weights.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eachTensor, expectedTensors } from "../../src/model/checkpoint/expected-tensors.ts";
import { parseModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { writeSafetensors } from "../../src/model/checkpoint/safetensors-writer.ts";
import { seededRandom } from "../../src/training/random.ts";
import { type Family, fixtureFolder } from "./runner-driver.ts";

export interface Widths {
  family: Family;
  hidden: number;
  intermediate: number;
  heads: number;
  kvHeads: number;
  headDim: number;
  /** Further fields of config.json. */
  more?: object;
}

export function writeWideCheckpoint(folder: string, widths: Widths): void {
  const fixture = JSON.parse(readFileSync(join(fixtureFolder(widths.family), "config.json"), "utf8"));
  const config = {
    ...fixture,
    hidden_size: widths.hidden,
    intermediate_size: widths.intermediate,
    num_attention_heads: widths.heads,
    num_key_value_heads: widths.kvHeads,
    head_dim: widths.headDim,
    num_hidden_layers: 1,
    layer_types: fixture.layer_types?.slice(0, 1),
    query_pre_attn_scalar: widths.headDim,
    ...widths.more,
  };
  const random = seededRandom(5);
  const tensors = [...eachTensor(expectedTensors(parseModelConfig("config.json", config)))];
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
  writeSafetensors(
    join(folder, "model.safetensors"),
    tensors.map(({ name, shape }) => {
      const spread = shape.length === 2 ? 3 / Math.sqrt(shape[1]!) : 0.2;
      const middle = /norm|ln_\w+\.weight/.test(name) ? 1 : 0;
      const size = shape.reduce((product, each) => product * each, 1);
      const values = Float32Array.from({ length: size }, () => middle + spread * (random() - 0.5));
      return { name, shape, values, dtype: "BF16" };
    }),
  );
}
