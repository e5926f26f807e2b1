// LoRA adapters as PEFT folders (adapter_config.json + adapter_model.safetensors), the form that PEFT and vLLM read and
// write. Loading checks every tensor against the model. Saving is atomic and durable: the folder appears complete or
// not at all, and is on the disk when the call returns.

import { existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { syncFolder, temporaryBeside, writeNewFile } from "../../system/files.ts";
import { CheckpointError } from "../checkpoint/checkpoint-file.ts";
import { linearShape, modulePath } from "../checkpoint/expected-tensors.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import { SafetensorsFile } from "../checkpoint/safetensors.ts";
import { encodeSafetensors, type TensorToWrite } from "../checkpoint/safetensors-writer.ts";
import { familyNamed } from "../families/registry.ts";
import { type LinearName, mapsOf } from "../families/tensor-names.ts";
import { createAdapter, eachPair, type LoraAdapter, type LoraLayer, type LoraPair, loraScale } from "./lora-adapter.ts";
import { type PeftConfig, readPeftConfig } from "./peft-config.ts";

const WEIGHTS_NAME = "adapter_model.safetensors";

/**
 * Largest allowed factor; trained ones are far smaller. Without the native module, every row of a step is multiplied with the
 * factors of all its adapters and only then masked (graph-lora.ts). A product that overflows would make the rows of other requests NaN,
 * because infinity times 0 is NaN.
 */
const MAX_WEIGHT = 1e18;

/** Modules of a sparse layer, as transformers 4 and 5 name them. */
const OF_EXPERTS = /\.mlp\.(experts|gate|router)\./;

/** Reads an adapter for a model of this configuration. Throws CheckpointError. */
export function loadPeft(folder: string, config: ModelConfig): LoraAdapter {
  const peft = readPeftConfig(folder, familyNamed(config.family).names.transposed);
  const path = join(folder, WEIGHTS_NAME);
  if (!existsSync(path)) {
    const pickled = existsSync(join(folder, "adapter_model.bin")) ? " (adapter_model.bin must be converted)" : "";
    throw new CheckpointError(folder, `has no ${WEIGHTS_NAME}${pickled}`);
  }
  const file = SafetensorsFile.open(path);
  try {
    const layers = readLayers(file, peft, config);
    return createAdapter(config, { rank: peft.rank, alpha: peft.alpha, rankStabilised: peft.rankStabilised, layers });
  } catch (cause) {
    if (cause instanceof RangeError) throw new CheckpointError(path, cause.message, { cause });
    throw cause;
  } finally {
    file.close();
  }
}

/** Where an adapter's factors are, for a program that reads them itself. Its file must not change meanwhile. */
export interface PeftPlaces {
  /** Factor on what the pairs add. */
  scale: number;
  file: { path: string; bytes: number; mtimeNs: string };
  /** `a` is [rank, in], `b` is [out, rank]. */
  tensors: {
    layer: number;
    name: LinearName;
    factor: "a" | "b";
    dtype: string;
    shape: readonly number[];
    /** Bytes from the start of the file. */
    offset: number;
  }[];
}

/** Reads no weights: `loadPeft` has checked them. */
export function locatePeft(folder: string, config: ModelConfig): PeftPlaces {
  const { rank, alpha, rankStabilised } = readPeftConfig(folder, familyNamed(config.family).names.transposed);
  const path = resolve(folder, WEIGHTS_NAME);
  const { size, mtimeNs } = statSync(path, { bigint: true });
  const file = SafetensorsFile.open(path);
  try {
    const tensors = [...file.tensors.values()].map((entry) => {
      const key = parseKey(entry.name, config);
      if (key === null) throw new CheckpointError(path, `tensor "${entry.name}" is none of this model's LoRA weights`);
      const { layer, name, factor } = key;
      return { layer, name, factor, dtype: entry.dtype, shape: entry.shape, offset: file.offsetOf(entry.name) };
    });
    const scale = loraScale({ rank, alpha, rankStabilised });
    return { scale, file: { path, bytes: Number(size), mtimeNs: String(mtimeNs) }, tensors };
  } finally {
    file.close();
  }
}

export interface PeftInfo {
  /** A hub name or a path; `base_model_name_or_path` in the file. */
  baseModel: string;
}

/** Writes the adapter as a new folder. Refuses an existing folder: adapters are never overwritten. */
export function savePeft(folder: string, adapter: LoraAdapter, config: ModelConfig, info: PeftInfo): void {
  const target = resolve(folder);
  if (existsSync(target)) throw new CheckpointError(target, "exists already; an adapter is never overwritten");
  const created = mkdirSync(dirname(target), { recursive: true });
  const temporary = temporaryBeside(target);
  try {
    mkdirSync(temporary);
    writeNewFile(join(temporary, WEIGHTS_NAME), encodeSafetensors(tensorsOf(adapter, config), { format: "pt" }));
    const json = `${JSON.stringify(peftJson(adapter, config, info), null, 2)}\n`;
    writeNewFile(join(temporary, "adapter_config.json"), [new TextEncoder().encode(json)]);
    syncFolder(temporary);
    renameSync(temporary, target);
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    throw error;
  }
  syncFolder(dirname(target));
  if (created !== undefined) syncFolder(dirname(created));
}

interface TensorKey {
  layer: number;
  name: LinearName;
  factor: "a" | "b";
  /** Name of the module, without "base_model.model." before and "lora_A.weight" after it. */
  module: string;
}

function readLayers(file: SafetensorsFile, peft: PeftConfig, config: ModelConfig): LoraLayer[] {
  if (file.tensors.size === 0) throw new CheckpointError(file.path, "has no LoRA weights");
  const layers = Array.from({ length: config.numLayers }, () => new Map<LinearName, Partial<LoraPair>>());
  const wrong = (tensor: string, problem: string) => new CheckpointError(file.path, `tensor "${tensor}" ${problem}`);
  for (const entry of file.tensors.values()) {
    const key = parseKey(entry.name, config);
    if (key === null) {
      if (OF_EXPERTS.test(entry.name) && config.layers.some(({ experts }) => experts !== null)) {
        throw wrong(
          entry.name,
          "changes experts or their router, which adapters cannot do here: adapt attention alone",
        );
      }
      throw wrong(entry.name, `is none of this model's LoRA weights (targets: ${targetsOf(config).join(", ")})`);
    }
    const layer = layers[key.layer];
    if (layer === undefined) {
      throw wrong(entry.name, `is for a layer the model does not have (it has ${config.numLayers})`);
    }
    if (!peft.targets(key.module)) {
      throw wrong(
        entry.name,
        "is not covered by target_modules (exclude_modules, layers_to_transform) in adapter_config.json",
      );
    }
    const [outSize, inSize] = linearShape(config, key.name);
    const shape = key.factor === "a" ? [peft.rank, inSize] : [outSize, peft.rank];
    if (entry.shape.length !== 2 || entry.shape[0] !== shape[0] || entry.shape[1] !== shape[1]) {
      throw wrong(entry.name, `has shape [${entry.shape}], expected [${shape}] for rank ${peft.rank} on this model`);
    }
    const pair = layer.get(key.name) ?? {};
    if (pair[key.factor] !== undefined) throw wrong(entry.name, "is there twice, under different adapter names");
    const values = file.read(entry.name);
    const tooLarge = values.find((value) => Math.abs(value) > MAX_WEIGHT);
    if (tooLarge !== undefined) throw wrong(entry.name, `has the value ${tooLarge}: above ${MAX_WEIGHT} it is broken`);
    layer.set(key.name, { ...pair, [key.factor]: values });
  }
  return layers.map((layer, index) => {
    for (const [name, pair] of layer) {
      const missing = pair.a === undefined ? "A" : pair.b === undefined ? "B" : null;
      const where = `layers.${index}.${modulePath(config, name)}`;
      if (missing !== null) throw new CheckpointError(file.path, `has no lora_${missing} for ${where}`);
    }
    return Object.fromEntries(layer) as LoraLayer;
  });
}

/** "base_model.model.model.layers.3.mlp.up_proj.lora_A[.adapter name].weight"; null for anything else. */
function parseKey(tensor: string, config: ModelConfig): TensorKey | null {
  const match = /^(?:base_model\.model\.)?(.*)\.lora_([AB])(?:\.[\w-]+)?\.weight$/.exec(tensor);
  if (match === null) return null;
  const module = match[1]!;
  const { tensorPrefixes, names } = familyNamed(config.family);
  const start = tensorPrefixes.map((prefix) => `${prefix}${names.layers}.`).find((text) => module.startsWith(text));
  const place = start === undefined ? null : /^(\d{1,6})\.(.+)$/.exec(module.slice(start.length));
  if (place === null) return null;
  const layer = Number(place[1]);
  // A layer that the model does not have is a problem of its own.
  const maps = mapsOf(config.layers[layer] ?? config.layers[0]!);
  const name = maps.find((each) => modulePath(config, each) === place[2]);
  return name === undefined ? null : { layer, name, factor: match[2] === "A" ? "a" : "b", module };
}

/** The modules that adapters of this model may have weights for. */
function targetsOf(config: ModelConfig): string[] {
  return [...new Set(config.layers.flatMap((layer) => mapsOf(layer).map((name) => modulePath(config, name))))];
}

/** Widened to float32, which keeps the values exactly. */
function tensorsOf(adapter: LoraAdapter, config: ModelConfig): TensorToWrite[] {
  const dtype = "F32";
  const { tensorPrefixes, names } = familyNamed(config.family);
  return [...eachPair(adapter.layers)].flatMap(({ layer, name, pair }) => {
    const [outSize, inSize] = linearShape(config, name);
    const path = `base_model.model.${tensorPrefixes[0]}${names.layers}.${layer}.${modulePath(config, name)}`;
    return [
      { name: `${path}.lora_A.weight`, shape: [adapter.rank, inSize], values: pair.a, dtype },
      { name: `${path}.lora_B.weight`, shape: [outSize, adapter.rank], values: pair.b, dtype },
    ];
  });
}

function peftJson(adapter: LoraAdapter, config: ModelConfig, info: PeftInfo): object {
  const modules = [...eachPair(adapter.layers)].map(({ name }) => modulePath(config, name));
  const targets = new Set(modules.map((module) => module.split(".").at(-1)!));
  return {
    peft_type: "LORA",
    task_type: "CAUSAL_LM",
    base_model_name_or_path: info.baseModel,
    r: adapter.rank,
    lora_alpha: adapter.alpha,
    lora_dropout: 0,
    target_modules: [...targets],
    bias: "none",
    use_rslora: adapter.rankStabilised,
    use_dora: false,
    modules_to_save: null,
    fan_in_fan_out: familyNamed(config.family).names.transposed,
    inference_mode: true,
  };
}
