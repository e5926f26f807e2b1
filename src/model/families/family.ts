// What distinguishes one model family from the others, as data. checkpoint/model-config.ts turns a description and a
// config.json into the one ModelConfig. To add a family, describe it in a file beside this one and list it in
// registry.ts.

import type { JsonObject } from "../../json/json.ts";
import type { ConfigFields } from "../checkpoint/config-fields.ts";
import {
  NORMS_BEFORE,
  type NormNames,
  SEPARATE_MAPS,
  type SiteMaps,
  type TensorNames,
  USUAL_NAMES,
} from "./tensor-names.ts";

export type FamilyName =
  | "llama"
  | "mistral"
  | "qwen2"
  | "qwen3"
  | "gemma2"
  | "gemma3"
  | "olmo2"
  | "granite"
  | "smollm3"
  | "phi3"
  | "gpt2"
  | "qwen3_moe";

export interface Family {
  readonly name: FamilyName;
  /** Values of `model_type` in config.json. */
  readonly modelTypes: readonly string[];
  /** Values of `architectures` that mean this family's language model, not for example a classifier on top of it. */
  readonly architectures: readonly string[];
  /** The family's own words for keys of config.json. */
  readonly keys?: Readonly<Record<string, string>>;
  /** What transformers assumes for keys that config.json leaves out. */
  readonly defaults: JsonObject;
  /** Everything before "layers.0" in tensor names, most usual first. */
  readonly tensorPrefixes: readonly string[];
  readonly names: TensorNames;
  traits(fields: ConfigFields, numLayers: number): FamilyTraits;
}

/** The fields of a ModelConfig that depend on the family alone. */
export interface ModelTraits {
  qkvBias: boolean;
  oBias: boolean;
  mlpBias: boolean;
  /** Root mean square, or mean and variance with a bias. */
  norm: "rms" | "layer";
  /** The norms of a layer, by place. */
  norms: NormNames;
  /** down(activation(gate) * up), or down(activation(up)). */
  mlp: "gated" | "plain";
  /** RMS norm of queries and keys, before RoPE: over headDim of every head, or over all heads of a token together. */
  qkNorm: "none" | "head" | "width";
  /** Added to every stored norm weight, query and key norms included: Gemma stores weight - 1. */
  normWeightOffset: 0 | 1;
  /** Factor on the embeddings that enter the first layer. A tied output head does not have it. */
  embeddingScale: number;
  /** Factor on what attention and MLP add to their input. */
  residualScale: number;
  /** Factor on the logits, before the soft cap. */
  logitScale: number;
  /** c: logits become c * tanh(logits / c). null = off. */
  logitSoftcap: number | null;
  /** The same for query-key products, after attentionScale and before the mask. */
  attentionSoftcap: number | null;
}

/** Everything that depends on the family. */
export interface FamilyTraits extends ModelTraits {
  /** null = 1 / sqrt(head size). */
  attentionScale: number | null;
  /** Key of config.json that names the activation. */
  activationKey: "hidden_act" | "hidden_activation";
  /** Sliding window of each layer; null = the layer sees everything. Length: numLayers. */
  windows: readonly (number | null)[];
  /** Whether each layer rotates its queries and keys; null = all do. */
  rotates: readonly boolean[] | null;
  /** The stored linear layers of each site. */
  maps: SiteMaps;
  /** When config.json does not say; null = it must. */
  intermediateSize: number | null;
  /** The experts of each layer, which do the work of its MLP; null = none. */
  experts: readonly (ExpertsConfig | null)[] | null;
  /** Whether max_position_embeddings already includes the positions that rotary scaling adds. */
  scaledContext: boolean;
  /** Whether `partial_rotary_factor` counts. */
  partialRotary: boolean;
  /** Where the rotary parameters are, for layers with and without a window. */
  rope: { full: RopeSource; sliding: RopeSource };
}

/** Small MLPs side by side, of which a router chooses a few for each token. */
export interface ExpertsConfig {
  count: number;
  perToken: number;
  intermediateSize: number;
  /** Whether the weights of the chosen experts are divided by their sum. */
  normalised: boolean;
}

/** Where a config.json of transformers 4 keeps the rotary parameters of a kind of layer. */
export interface RopeSource {
  /** Key of the base frequency, and its value when the key is absent. */
  thetaKey: string;
  defaultTheta: number;
  /** Whether `rope_scaling` applies. */
  scaled: boolean;
}

/** A base frequency for all layers. */
export function oneRope(defaultTheta: number): FamilyTraits["rope"] {
  const source = { thetaKey: "rope_theta", defaultTheta, scaled: true };
  return { full: source, sliding: source };
}

/** The traits of a plain Llama-like decoder. A family states only its differences. */
export const plainTraits: Omit<FamilyTraits, "windows"> = {
  qkvBias: false,
  oBias: false,
  mlpBias: false,
  norm: "rms",
  norms: NORMS_BEFORE,
  mlp: "gated",
  qkNorm: "none",
  normWeightOffset: 0,
  embeddingScale: 1,
  residualScale: 1,
  attentionScale: null,
  attentionSoftcap: null,
  logitScale: 1,
  logitSoftcap: null,
  activationKey: "hidden_act",
  rotates: null,
  maps: SEPARATE_MAPS,
  intermediateSize: null,
  experts: null,
  scaledContext: false,
  partialRotary: false,
  rope: oneRope(10_000),
};

/** Of a family with the tensor names of Llama. */
export const llamaNaming = { tensorPrefixes: ["model."], names: USUAL_NAMES } as const;
