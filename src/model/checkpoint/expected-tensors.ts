// The tensors of a model with a given configuration, by role, with their names in the checkpoint and their shapes.
// Roles are the same for all families; names and presence differ. Linear weights are stored [out, in].

import type { ModelConfig } from "./model-config.ts";

/** The linear maps of one layer, which are also the possible targets of a LoRA adapter. */
export const LINEAR_NAMES = ["q", "k", "v", "o", "gate", "up", "down"] as const;
export type LinearName = (typeof LINEAR_NAMES)[number];

export interface TensorSpec {
  name: string;
  shape: readonly number[];
}

export interface LinearTensors {
  /** [out, in] */
  weight: TensorSpec;
  /** [out] */
  bias: TensorSpec | null;
}

export interface LayerTensors {
  linears: Readonly<Record<LinearName, LinearTensors>>;
  /** On the input of attention: [hidden]. */
  attentionNorm: TensorSpec;
  /** On the output of attention, before the residual is added; only with config.postNorms. */
  attentionPostNorm: TensorSpec | null;
  /** On the input of the MLP. */
  mlpNorm: TensorSpec;
  /** On the output of the MLP; only with config.postNorms. */
  mlpPostNorm: TensorSpec | null;
  /** [headDim]; only with config.qkNorm. */
  qNorm: TensorSpec | null;
  kNorm: TensorSpec | null;
}

export interface ModelTensors {
  /** [vocab, hidden] */
  embedding: TensorSpec;
  /** [vocab, hidden]; null when the embedding is the output head. */
  head: TensorSpec | null;
  finalNorm: TensorSpec;
  layers: readonly LayerTensors[];
}

/** [out, in] of a linear map. */
export function linearShape(config: ModelConfig, name: LinearName): readonly [number, number] {
  const { hiddenSize: hidden, intermediateSize: inner, numHeads, numKvHeads, headDim } = config;
  const [queries, keys] = [numHeads * headDim, numKvHeads * headDim];
  const shapes: Record<LinearName, readonly [number, number]> = {
    ...{ q: [queries, hidden], k: [keys, hidden], v: [keys, hidden], o: [hidden, queries] },
    ...{ gate: [inner, hidden], up: [inner, hidden], down: [hidden, inner] },
  };
  return shapes[name];
}

/** The module of a linear map inside a layer, as Hugging Face names it: "self_attn.q_proj". */
export function modulePath(name: LinearName): string {
  const block = name === "gate" || name === "up" || name === "down" ? "mlp" : "self_attn";
  return `${block}.${name}_proj`;
}

/** `prefix`: the part before "layers.0" in this checkpoint's names, usually "model.". */
export function expectedTensors(config: ModelConfig, prefix = "model."): ModelTensors {
  const hidden = [config.hiddenSize];
  const vocabulary = [config.vocabSize, config.hiddenSize];
  // "model." -> "lm_head", "language_model.model." -> "language_model.lm_head", "model.language_model." -> "lm_head"
  const headPrefix = prefix.endsWith(".model.") ? prefix.slice(0, -"model.".length) : "";
  return {
    embedding: { name: `${prefix}embed_tokens.weight`, shape: vocabulary },
    head: config.tieWordEmbeddings ? null : { name: `${headPrefix}lm_head.weight`, shape: vocabulary },
    finalNorm: { name: `${prefix}norm.weight`, shape: hidden },
    layers: config.layers.map((_, index) => layerTensors(config, `${prefix}layers.${index}.`)),
  };
}

/** All tensors in one list, in the order in which a model uses them. */
export function* eachTensor(tensors: ModelTensors): Generator<TensorSpec> {
  yield tensors.embedding;
  for (const layer of tensors.layers) {
    const { linears, ...norms } = layer;
    for (const spec of Object.values(norms)) if (spec !== null) yield spec;
    for (const { weight, bias } of Object.values(linears)) {
      yield weight;
      if (bias !== null) yield bias;
    }
  }
  yield tensors.finalNorm;
  if (tensors.head !== null) yield tensors.head;
}

function layerTensors(config: ModelConfig, layer: string): LayerTensors {
  const linear = (name: LinearName): LinearTensors => {
    const shape = linearShape(config, name);
    const path = layer + modulePath(name);
    const bias = { name: `${path}.bias`, shape: [shape[0]] };
    return { weight: { name: `${path}.weight`, shape }, bias: hasBias(config, name) ? bias : null };
  };
  const norm = (name: string, size = config.hiddenSize): TensorSpec => ({
    name: `${layer}${name}.weight`,
    shape: [size],
  });
  const { postNorms, qkNorm, headDim } = config;
  return {
    linears: {
      q: linear("q"),
      k: linear("k"),
      v: linear("v"),
      o: linear("o"),
      gate: linear("gate"),
      up: linear("up"),
      down: linear("down"),
    },
    attentionNorm: norm("input_layernorm"),
    // With norms on both sides, "post_attention" means what it says. Otherwise it is the norm before the MLP.
    attentionPostNorm: postNorms ? norm("post_attention_layernorm") : null,
    mlpNorm: norm(postNorms ? "pre_feedforward_layernorm" : "post_attention_layernorm"),
    mlpPostNorm: postNorms ? norm("post_feedforward_layernorm") : null,
    qNorm: qkNorm ? norm("self_attn.q_norm", headDim) : null,
    kNorm: qkNorm ? norm("self_attn.k_norm", headDim) : null,
  };
}

function hasBias(config: ModelConfig, name: LinearName): boolean {
  if (name === "o") return config.oBias;
  return name === "q" || name === "k" || name === "v" ? config.qkvBias : config.mlpBias;
}
