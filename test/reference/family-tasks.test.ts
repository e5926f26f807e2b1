// A training task from a fresh adapter, over rounded weights, for families whose maps differ from Llama's: the step is a
// PEFT folder under the family's names, and it changes every map.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { SafetensorsFile } from "../../src/model/checkpoint/safetensors.ts";
import { mapsOf } from "../../src/model/families/tensor-names.ts";
import { eachPair } from "../../src/model/lora/lora-adapter.ts";
import { loadPeft, savePeft } from "../../src/model/lora/peft.ts";
import { RL_DEFAULTS } from "../../src/training/config.ts";
import { identityAdapter } from "../../src/training/files/adapter-files.ts";
import { TrainableModel } from "../../src/training/onnx/pass/trainable-model.ts";
import { runTask } from "../../src/training/onnx/run-task.ts";
import { fixtureFolder } from "./runner-driver.ts";

it.each([
  ["phi3", "base_model.model.model.layers.1.self_attn.qkv_proj.lora_A.weight"],
  ["gpt2", "base_model.model.transformer.h.1.attn.c_attn.lora_A.weight"],
  ["qwen3-moe", "base_model.model.model.layers.2.self_attn.q_proj.lora_A.weight"],
] as const)("%s", async (family, tensor) => {
  const baseModel = fixtureFolder(family);
  const config = readModelConfig(baseModel);
  const folder = mkdtempSync(join(tmpdir(), "family-task-"));
  const [adapter, output, batch] = ["first", "step", "batch"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const first = identityAdapter(config, { rank: 2, alpha: 4 }, 1);
  savePeft(adapter, first, config, { baseModel: family });
  const ids = Array.from({ length: 24 }, (_, i) => 3 + ((i * 37) % 250));
  const mask = ids.map((_, i) => (i < 10 ? 0 : 1));
  const sequence = { ids, mask, oldLogprobs: ids.map(() => null), advantage: 1, weight: 1, group: 0 };
  writeFileSync(batch, JSON.stringify(sequence));
  const models: TrainableModel[] = [];
  const steps = [1, 2].map(() => ({ from: 0, to: 1, learningRate: 1e-2 }));
  const task = {
    ...{
      baseModel,
      weights: "int8" as const,
      positionsPerBlock: 16,
      adapter,
      optimizerState: null,
      batch,
      steps,
      output,
    },
    ...{ objective: { kind: "cross_entropy" as const }, optimizer: RL_DEFAULTS.optimizer, threads: 1 },
    ...{ activationBytes: 1e9, tokenNumbers: null },
  };
  const losses: number[] = [];
  await runTask(task, {
    onStep: ({ loss }) => losses.push(loss!),
    between: async () => {},
    async modelFor({ weights, threads, positionsPerBlock }, rank) {
      const model = await TrainableModel.create({
        folder: baseModel,
        weights: "int8",
        rank,
        threads,
        positionsPerBlock,
      });
      expect(weights).toBe("int8");
      models.push(model);
      return model;
    },
  });
  for (const model of models) await model.close();
  expect(losses[1]).toBeLessThan(losses[0]!);
  const file = SafetensorsFile.open(join(output, "adapter_model.safetensors"));
  expect([...file.tensors.keys()]).toContain(tensor);
  file.close();
  const changed = [...eachPair(loadPeft(output, config).layers)].filter(({ pair }) =>
    pair.b.some((value) => value !== 0),
  );
  expect(changed.map(({ layer, name }) => `${layer}.${name}`)).toEqual(
    config.layers.flatMap((layer, index) => mapsOf(layer).map((name) => `${index}.${name}`)),
  );
  rmSync(folder, { recursive: true });
});
