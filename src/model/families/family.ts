// What distinguishes one model family from the others, as data. checkpoint/model-config.ts turns a description and a
// config.json into the one ModelConfig. To add a family, describe it in a file beside this one and list it in
// registry.ts.

import type { JsonObject } from "../../json/json-object.ts";
import type { ConfigFields } from "../checkpoint/config-fields.ts";

export type FamilyName = "llama" | "mistral" | "qwen2" | "qwen3" | "gemma3";

export interface Family {
  readonly name: FamilyName;
  /** Values of `model_type` in config.json. */
  readonly modelTypes: readonly string[];
  /** Values of `architectures` that mean this family's language model, not for example a classifier on top of it. */
  readonly architectures: readonly string[];
  /** What transformers assumes for keys that config.json leaves out. */
  readonly defaults: JsonObject;
  /** Everything before "layers.0" in tensor names, most usual first. */
  readonly tensorPrefixes: readonly string[];
  traits(fields: ConfigFields, numLayers: number): FamilyTraits;
}

/** The fields of a ModelConfig that depend on the family alone. */
export interface ModelTraits {
  qkvBias: boolean;
  oBias: boolean;
  mlpBias: boolean;
  /** RMS norm over headDim of every query and key head, before RoPE. */
  qkNorm: boolean;
  /** Added to every stored norm weight, query and key norms included: Gemma stores weight - 1. */
  normWeightOffset: 0 | 1;
  /** Whether the outputs of attention and MLP have norms too, before the residual (four norms per layer). */
  postNorms: boolean;
  /** Factor on the embeddings that enter the first layer. A tied output head does not have it. */
  embeddingScale: number;
  /** c: logits become c * tanh(logits / c). null = off. */
  logitSoftcap: number | null;
}

/** Everything that depends on the family. */
export interface FamilyTraits extends ModelTraits {
  /** null = 1 / sqrt(head size). */
  attentionScale: number | null;
  /** Key of config.json that names the activation. */
  activationKey: "hidden_act" | "hidden_activation";
  /** Sliding window of each layer; null = the layer sees everything. Length: numLayers. */
  windows: readonly (number | null)[];
  /** Whether max_position_embeddings already includes the positions that rotary scaling adds. */
  scaledContext: boolean;
  /** Where the rotary parameters are, for layers with and without a window. */
  rope: { full: RopeSource; sliding: RopeSource };
}

/** Where a config.json of transformers 4 keeps the rotary parameters of a kind of layer. */
export interface RopeSource {
  /** Key of the base frequency, and its value when the key is absent. */
  thetaKey: string;
  defaultTheta: number;
  /** Whether `rope_scaling` applies. */
  scaled: boolean;
}

/** The traits of a plain Llama-like decoder. A family states only its differences. */
export const plainTraits: Omit<FamilyTraits, "windows"> = {
  qkvBias: false,
  oBias: false,
  mlpBias: false,
  qkNorm: false,
  normWeightOffset: 0,
  postNorms: false,
  embeddingScale: 1,
  attentionScale: null,
  logitSoftcap: null,
  activationKey: "hidden_act",
  scaledContext: false,
  rope: {
    full: { thetaKey: "rope_theta", defaultTheta: 10_000, scaled: true },
    sliding: { thetaKey: "rope_theta", defaultTheta: 10_000, scaled: true },
  },
};
