// The tensors of a model with a given configuration, by role, with their names in the checkpoint and their shapes.
// Roles are the same for all families; names and presence differ. Linear weights are stored [out, in] unless they say otherwise.

import type { ExpertsConfig } from "../families/family.ts";
import { familyNamed } from "../families/registry.ts";
import { type LinearName, mapsOf, type NormNames, type Site } from "../families/tensor-names.ts";
import type { LayerConfig, ModelConfig } from "./model-config.ts";

export interface TensorSpec {
  name: string;
  shape: readonly number[];
}

export interface LinearTensors {
  /** [out, in], or [in, out] if transposed. */
  weight: TensorSpec;
  transposed: boolean;
  /** [out] */
  bias: TensorSpec | null;
}

/** [size] each. Layer norms have a bias. */
export interface NormTensors {
  weight: TensorSpec;
  bias: TensorSpec | null;
}

export interface ExpertsTensors {
  /** [experts, hidden] */
  router: TensorSpec;
  experts: readonly Readonly<Record<"gate" | "up" | "down", LinearTensors>>[];
}

export interface LayerTensors {
  /** The stored linear layers. */
  linears: Readonly<Partial<Record<LinearName, LinearTensors>>>;
  /** [hidden] each. */
  norms: Readonly<Record<keyof NormNames, NormTensors | null>>;
  /** [headDim], or [heads * headDim] for norms over all heads; only with config.qkNorm. */
  qNorm: TensorSpec | null;
  kNorm: TensorSpec | null;
  experts: ExpertsTensors | null;
}

export interface ModelTensors {
  /** [vocab, hidden] */
  embedding: TensorSpec;
  /** [maxPositions, hidden]: added to the embeddings; null = no such tensor. */
  positions: TensorSpec | null;
  /** [vocab, hidden]; null when the embedding is the output head. */
  head: TensorSpec | null;
  finalNorm: NormTensors;
  layers: readonly LayerTensors[];
}

/** [out, in] of a linear layer. */
export function linearShape(config: ModelConfig, name: LinearName): readonly [number, number] {
  const { hiddenSize: hidden, intermediateSize: inner, numHeads, numKvHeads, headDim } = config;
  const [queries, keys] = [numHeads * headDim, numKvHeads * headDim];
  const shapes: Record<LinearName, readonly [number, number]> = {
    ...{ q: [queries, hidden], k: [keys, hidden], v: [keys, hidden], qkv: [queries + 2 * keys, hidden] },
    o: [hidden, queries],
    ...{ gate: [inner, hidden], up: [inner, hidden], gate_up: [2 * inner, hidden], down: [hidden, inner] },
  };
  return shapes[name];
}

/** Inputs and outputs of the stored linear layers of a site as one. */
export function siteShape(config: ModelConfig, layer: number, site: Site): { inputs: number; out: number } {
  const shapes = config.layers[layer]!.maps[site].map((name) => linearShape(config, name));
  return { inputs: shapes[0]![1], out: shapes.reduce((sum, shape) => sum + shape[0], 0) };
}

/** The module of a linear layer inside a decoder layer, as Hugging Face names it: "self_attn.q_proj". */
export function modulePath(config: ModelConfig, name: LinearName): string {
  return familyNamed(config.family).names.modules[name];
}

/**
 * `prefix`: the part before "layers.0" in this checkpoint's names; by default the family's usual one. `transposed`: whether
 * linear weights are stored [in, out], if not as in the family's folders.
 */
export function expectedTensors(config: ModelConfig, prefix = usualPrefix(config), transposed?: boolean): ModelTensors {
  const { names } = familyNamed(config.family);
  const turned = transposed ?? names.transposed;
  const vocabulary = [config.vocabSize, config.hiddenSize];
  // "model." -> "lm_head", "language_model.model." -> "language_model.lm_head", "model.language_model." -> "lm_head"
  const headPrefix = prefix.endsWith(".model.") ? prefix.slice(0, -"model.".length) : "";
  return {
    embedding: { name: `${prefix}${names.embedding}.weight`, shape: vocabulary },
    positions:
      names.positions === null
        ? null
        : { name: `${prefix}${names.positions}.weight`, shape: [config.maxPositions, config.hiddenSize] },
    head: config.tieWordEmbeddings ? null : { name: `${headPrefix}lm_head.weight`, shape: vocabulary },
    finalNorm: normTensors(config, `${prefix}${names.finalNorm}`),
    layers: config.layers.map((layer, index) =>
      layerTensors(config, layer, `${prefix}${names.layers}.${index}.`, turned),
    ),
  };
}

function usualPrefix({ family }: ModelConfig): string {
  return familyNamed(family).tensorPrefixes[0]!;
}

/** All tensors in one list, in the order in which a model uses them. */
export function* eachTensor(tensors: ModelTensors): Generator<TensorSpec> {
  yield* present([tensors.embedding, tensors.positions]);
  for (const { linears, norms, qNorm, kNorm, experts } of tensors.layers) {
    for (const norm of Object.values(norms)) yield* present([norm?.weight, norm?.bias]);
    yield* present([qNorm, kNorm]);
    for (const { weight, bias } of Object.values(linears)) yield* present([weight, bias]);
    yield* present([experts?.router]);
    for (const expert of experts?.experts ?? []) yield* Object.values(expert).map(({ weight }) => weight);
  }
  yield* present([tensors.finalNorm.weight, tensors.finalNorm.bias, tensors.head]);
}

function present(specs: readonly (TensorSpec | null | undefined)[]): TensorSpec[] {
  return specs.filter((spec) => spec !== null && spec !== undefined);
}

function normTensors({ norm, hiddenSize }: ModelConfig, module: string): NormTensors {
  const tensor = (part: string) => ({ name: `${module}.${part}`, shape: [hiddenSize] });
  return { weight: tensor("weight"), bias: norm === "layer" ? tensor("bias") : null };
}

function layerTensors(config: ModelConfig, layer: LayerConfig, prefix: string, transposed: boolean): LayerTensors {
  const linear = (name: LinearName): LinearTensors => {
    const [out, inputs] = linearShape(config, name);
    const path = prefix + modulePath(config, name);
    const weight = { name: `${path}.weight`, shape: transposed ? [inputs, out] : [out, inputs] };
    const bias = { name: `${path}.bias`, shape: [out] };
    return { weight, transposed, bias: hasBias(config, name) ? bias : null };
  };
  const norm = (module: string | null) => (module === null ? null : normTensors(config, prefix + module));
  const { norms, qkNorm, numHeads, numKvHeads, headDim } = config;
  const headNorm = (module: string, heads: number) =>
    qkNorm === "none"
      ? null
      : { name: `${prefix}${module}.weight`, shape: [qkNorm === "width" ? heads * headDim : headDim] };
  return {
    linears: Object.fromEntries(mapsOf(layer).map((name) => [name, linear(name)])),
    norms: {
      attention: norm(norms.attention),
      attentionPost: norm(norms.attentionPost),
      mlp: norm(norms.mlp),
      mlpPost: norm(norms.mlpPost),
    },
    qNorm: headNorm("self_attn.q_norm", numHeads),
    kNorm: headNorm("self_attn.k_norm", numKvHeads),
    experts: layer.experts === null ? null : expertsTensors(config, layer.experts, `${prefix}mlp.`),
  };
}

function expertsTensors({ hiddenSize }: ModelConfig, experts: ExpertsConfig, prefix: string): ExpertsTensors {
  const linear = (name: string, shape: readonly number[]): LinearTensors => ({
    ...{ weight: { name: `${prefix}${name}.weight`, shape }, transposed: false, bias: null },
  });
  const { count, intermediateSize } = experts;
  return {
    router: linear("gate", [count, hiddenSize]).weight,
    experts: Array.from({ length: count }, (_, expert) => ({
      gate: linear(`experts.${expert}.gate_proj`, [intermediateSize, hiddenSize]),
      up: linear(`experts.${expert}.up_proj`, [intermediateSize, hiddenSize]),
      down: linear(`experts.${expert}.down_proj`, [hiddenSize, intermediateSize]),
    })),
  };
}

function hasBias(config: ModelConfig, name: LinearName): boolean {
  if (name === "o") return config.oBias;
  return name === "q" || name === "k" || name === "v" || name === "qkv" ? config.qkvBias : config.mlpBias;
}
