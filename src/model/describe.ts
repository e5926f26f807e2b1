// A checkpoint as another program needs it to run the model: the numbers of its ModelConfig, frequencies in place of
// rotary settings, and of each tensor its role and where its bytes are. trainer/flywheel_gpu/model.py is the other
// program; it knows no families, no names and no config.json.

import { statSync } from "node:fs";
import type { Checkpoint } from "./checkpoint/checkpoint.ts";
import { CheckpointError, isGguf } from "./checkpoint/checkpoint-file.ts";
import type { LayerTensors, LinearTensors, NormTensors, TensorSpec } from "./checkpoint/expected-tensors.ts";
import type { LayerConfig, ModelConfig } from "./checkpoint/model-config.ts";
import { inverseFrequencies, takesLongFactors } from "./checkpoint/rope.ts";
import { SafetensorsFile } from "./checkpoint/safetensors.ts";
import { type LinearName, SITES } from "./families/tensor-names.ts";
import { distinctRopes } from "./rotary-table.ts";

/** The bytes of a tensor: row-major, little-endian. */
export interface TensorPlace {
  /** Index into `files`. */
  file: number;
  dtype: string;
  shape: readonly number[];
  /** Bytes from the start of the file. */
  offset: number;
}

/** Why the decoder of the GPU process cannot run this model; null = it can. */
export function undescribable({ path, config }: Pick<Checkpoint, "path" | "config">): string | null {
  if (isGguf(path)) return "reads safetensors, and this is a GGUF file";
  if (config.layers.some(({ experts }) => experts !== null)) return "runs no experts yet";
  if (config.norm !== "rms" || config.mlp !== "gated") return `does not run models of the family ${config.family}`;
  return null;
}

/** The parts `files` and `model` of the process's `hello`. `context`: positions that will be served. Throws CheckpointError for a model that cannot be described. */
export function describeModel(checkpoint: Checkpoint, context: number) {
  const { config, tensors } = checkpoint;
  const problem = undescribable(checkpoint);
  if (problem !== null) throw new CheckpointError(checkpoint.path, `the GPU engine ${problem}`);
  const places = new TensorPlaces(checkpoint);
  const { specs, ofLayer } = distinctRopes(config.layers);
  const norm = (of: NormTensors | null) => of && { weight: places.of(of.weight) };
  const model = {
    ...numbersOf(config),
    ropes: specs.map((spec) => ({
      frequencies: [...inverseFrequencies(spec, config.headDim, takesLongFactors(spec, context))],
      attentionFactor: spec.attentionFactor,
    })),
    embedding: places.of(tensors.embedding),
    head: tensors.head && places.of(tensors.head),
    finalNorm: norm(tensors.finalNorm),
    layers: tensors.layers.map((layer, i) => ({
      window: config.layers[i]!.window,
      rope: ofLayer[i]!,
      norms: {
        attention: norm(layer.norms.attention),
        attentionPost: norm(layer.norms.attentionPost),
        mlp: norm(layer.norms.mlp),
        mlpPost: norm(layer.norms.mlpPost),
      },
      qNorm: layer.qNorm && places.of(layer.qNorm),
      kNorm: layer.kNorm && places.of(layer.kNorm),
      sites: sitesOf(config.layers[i]!, layer, places),
    })),
  };
  return { files: places.files, model };
}

function numbersOf(config: ModelConfig) {
  const { vocabSize, hiddenSize, intermediateSize, numLayers, numHeads, numKvHeads, headDim, normEps } = config;
  const { activation, attentionScale, attentionSoftcap, qkvBias, oBias, mlpBias, norm, mlp, qkNorm } = config;
  const { normWeightOffset, embeddingScale, residualScale, logitScale, logitSoftcap } = config;
  return {
    ...{ vocabSize, hiddenSize, intermediateSize, numLayers, numHeads, numKvHeads, headDim, normEps },
    ...{ activation, attentionScale, attentionSoftcap, qkvBias, oBias, mlpBias, norm, mlp, qkNorm },
    ...{ normWeightOffset, embeddingScale, residualScale, logitScale, logitSoftcap },
  };
}

function sitesOf({ maps }: LayerConfig, { linears }: LayerTensors, places: TensorPlaces) {
  const linear = (name: LinearName) => {
    const { weight, bias }: LinearTensors = linears[name]!;
    return { name, weight: places.of(weight), bias: bias && places.of(bias) };
  };
  return Object.fromEntries(SITES.map((site) => [site, maps[site].map(linear)]));
}

/** Where the tensors of a checkpoint lie, and the files that hold them. */
class TensorPlaces {
  readonly files: { path: string; bytes: number }[] = [];
  readonly #checkpoint: Checkpoint;
  /** By path: the file's index, and where each of its tensors begins. */
  readonly #opened = new Map<string, { index: number; offsets: ReadonlyMap<string, number> }>();

  constructor(checkpoint: Checkpoint) {
    this.#checkpoint = checkpoint;
  }

  of({ name }: TensorSpec): TensorPlace {
    const { file, dtype, shape } = this.#checkpoint.tensor(name);
    const { index, offsets } = this.#opened.get(file) ?? this.#open(file);
    return { file: index, dtype, shape, offset: offsets.get(name)! };
  }

  #open(path: string) {
    const file = SafetensorsFile.open(path);
    const offsets = new Map([...file.tensors.keys()].map((name) => [name, file.offsetOf(name)]));
    file.close();
    const opened = { index: this.files.push({ path, bytes: statSync(path).size }) - 1, offsets };
    this.#opened.set(path, opened);
    return opened;
  }
}
