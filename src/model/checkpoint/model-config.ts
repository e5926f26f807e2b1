// ModelConfig: all that the decoder, the runner and the trainer need to know about a model, in one normalised form.
// parseModelConfig makes it from config.json as written by transformers 4 (rope_theta, rope_scaling) or transformers 5
// (rope_parameters, layer_types). ../families/ has what differs between model families; checkpoint.ts reads weights.

import type { JsonObject } from "../../json/json.ts";
import type { ExpertsConfig, FamilyName, FamilyTraits, ModelTraits } from "../families/family.ts";
import { familyOf } from "../families/registry.ts";
import type { SiteMaps } from "../families/tensor-names.ts";
import { CheckpointError, isGguf } from "./checkpoint-file.ts";
import { ConfigFields, MAX_INTEGER } from "./config-fields.ts";
import { readConfigJson } from "./config-files.ts";
import { parseRope, partialRotary, type RopeSpec } from "./rope.ts";

export interface ModelConfig extends ModelTraits {
  family: FamilyName;
  vocabSize: number;
  hiddenSize: number;
  intermediateSize: number;
  numLayers: number;
  numHeads: number;
  /** Divides numHeads. */
  numKvHeads: number;
  /** Even. Not always hiddenSize / numHeads. */
  headDim: number;
  normEps: number;
  /** Most tokens of prompt plus output: the positions that the model was trained for, times the rotary scaling. */
  maxPositions: number;
  /** Whether the output head is the embedding matrix. */
  tieWordEmbeddings: boolean;
  activation: Activation;
  /** Factor on query-key products before the softmax. */
  attentionScale: number;
  layers: readonly LayerConfig[];
  /** From config.json; generation_config.json may name others. Possibly empty. */
  eosTokenIds: readonly number[];
  bosTokenId: number | null;
}

export type Activation = "silu" | "gelu_tanh";

export interface LayerConfig {
  /** The query at position q sees the keys k with 0 <= q - k < window (q itself counts); null = all k <= q. */
  window: number | null;
  /** null = queries and keys are not rotated. */
  rope: RopeSpec | null;
  /** The stored linear layers of each site; none where experts do the work. */
  maps: SiteMaps;
  /** In place of the MLP; null = an MLP. */
  experts: ExpertsConfig | null;
}

const ACTIVATIONS: ReadonlyMap<string, Activation> = new Map([
  ["silu", "silu"],
  ["swish", "silu"],
  ["gelu_pytorch_tanh", "gelu_tanh"],
  ["gelu_new", "gelu_tanh"],
]);

/** Reads `config.json` in a checkpoint folder, or what stands for it in a GGUF file. */
export function readModelConfig(path: string): ModelConfig {
  const { file, json } = readConfigJson(path);
  const config = parseModelConfig(file, json);
  // Folders of some families have norms without their offset, GGUF files never.
  return isGguf(path) ? { ...config, normWeightOffset: 0 } : config;
}

/** `file` is only for error messages. */
export function parseModelConfig(file: string, json: JsonObject): ModelConfig {
  const top = new ConfigFields(file, json);
  const family = familyOf(top);
  // Multimodal checkpoints keep the language model's fields in an object of their own.
  const fields = (top.object("text_config") ?? top).withDefaults(family.defaults, family.keys);
  const outermost = (key: string) => (top.raw(key) === undefined ? fields : top);
  if (top.raw("quantization_config") !== undefined) {
    throw new CheckpointError(
      file,
      "quantised checkpoints are not supported: use the original F32, F16 or BF16 weights",
    );
  }

  const numLayers = fields.count("num_hidden_layers");
  if (numLayers > 4096) throw fields.problem("num_hidden_layers", "at most 4096");
  const { windows, rotates, maps, experts, intermediateSize, ...traits } = family.traits(fields, numLayers);
  const { attentionScale, activationKey, scaledContext, partialRotary, rope, ...modelTraits } = traits;
  const hiddenSize = fields.count("hidden_size");
  const numHeads = fields.count("num_attention_heads");
  const numKvHeads = fields.count("num_key_value_heads", numHeads);
  if (numHeads % numKvHeads !== 0) throw fields.problem("num_key_value_heads", `a divisor of the ${numHeads} heads`);
  const headDim = fields.count("head_dim", hiddenSize / numHeads);
  if (headDim % 2 !== 0) {
    throw new CheckpointError(
      file,
      `the head size must be an even integer, found ${headDim} (head_dim, or hidden_size / num_attention_heads)`,
    );
  }
  const maxPositions = fields.count("max_position_embeddings");
  const activation = ACTIVATIONS.get(fields.text(activationKey));
  if (activation === undefined) throw fields.problem(activationKey, `one of ${[...ACTIVATIONS.keys()].join(", ")}`);
  const ropes = layerRopes(fields, { ...rope, partialRotary }, { max: maxPositions, headDim });
  const layers = windows.map((window, layer) => {
    const turns = rotates === null || rotates[layer]!;
    const rope = turns ? ropes[window === null ? "full" : "sliding"]() : null;
    const ofLayer = experts?.[layer] ?? null;
    return { window, rope, maps: ofLayer === null ? maps : { ...maps, gateUp: [], down: [] }, experts: ofLayer };
  });

  return {
    family: family.name,
    vocabSize: fields.count("vocab_size"),
    hiddenSize,
    intermediateSize: fields.count("intermediate_size", intermediateSize ?? undefined),
    numLayers,
    numHeads,
    numKvHeads,
    headDim,
    normEps: fields.positive("rms_norm_eps"),
    maxPositions: scaledContext ? maxPositions : scaledPositions(file, maxPositions, layers),
    tieWordEmbeddings: outermost("tie_word_embeddings").flag("tie_word_embeddings", false),
    activation,
    attentionScale: attentionScale ?? 1 / Math.sqrt(headDim),
    ...modelTraits,
    layers,
    eosTokenIds: outermost("eos_token_id").tokenIds("eos_token_id") ?? [],
    bosTokenId: outermost("bos_token_id").tokenIds("bos_token_id")?.[0] ?? null,
  };
}

/** vLLM's rule: linear and YaRN scaling stretch the context; configurations of other kinds state the stretched one. */
function scaledPositions(file: string, declared: number, layers: readonly LayerConfig[]): number {
  const scaling = layers.find(({ rope }) => rope !== null)?.rope?.scaling ?? null;
  if (scaling === null || scaling.type === "llama3" || scaling.type === "longrope") return declared;
  const { type, factor } = scaling;
  const unscaled = type === "yarn" ? scaling.originalMaxPositions : declared;
  const positions = Math.floor(unscaled * factor);
  if (positions < 1 || positions > MAX_INTEGER) {
    throw new CheckpointError(file, `${type} rotary scaling by ${factor} makes ${unscaled} positions ${positions}`);
  }
  return positions;
}

type LayerKind = "full" | "sliding";

/** Rotary parameters by kind of layer, read when a layer needs them. */
function layerRopes(
  fields: ConfigFields,
  sources: FamilyTraits["rope"] & Pick<FamilyTraits, "partialRotary">,
  model: { max: number; headDim: number },
): Record<LayerKind, () => RopeSpec> {
  // An empty object counts as absent.
  const [parameters, scaling] = ["rope_parameters", "rope_scaling"].map((key) => {
    const object = fields.object(key);
    return object?.keys().length === 0 ? null : object;
  }) as [ConfigFields | null, ConfigFields | null];
  const perKind = parameters?.keys().some((key) => key === "full_attention" || key === "sliding_attention") ?? false;
  if (parameters !== null && !perKind && sources.full.thetaKey !== sources.sliding.thetaKey) {
    throw fields.problem("rope_parameters", "an object with full_attention and sliding_attention");
  }
  if (perKind && scaling !== null) {
    throw fields.problem("rope_scaling", "absent, as rope_parameters says it for every kind of layer");
  }
  // Some configurations state it themselves; that value wins.
  const key = "original_max_position_embeddings";
  const original = fields.raw(key) === undefined ? null : fields.count(key);
  const share = partialRotary(fields, sources.partialRotary);
  const ropeOf = (kind: LayerKind): RopeSpec => {
    const source = sources[kind];
    const theta = fields.positive(source.thetaKey, source.defaultTheta);
    const context = { ...model, original, share, partial: sources.partialRotary };
    const ofKind = perKind ? (parameters?.object(`${kind}_attention`) ?? null) : null;
    const spec = parseRope(perKind ? ofKind : source.scaled ? (scaling ?? parameters) : null, theta, context);
    if ((spec.rotated ?? 2) % 2 === 0 && spec.rotated !== 0) return spec;
    throw new CheckpointError(
      fields.file,
      `partial_rotary_factor rotates ${spec.rotated} of ${model.headDim} dimensions, which is not an even number`,
    );
  };
  return { full: () => ropeOf("full"), sliding: () => ropeOf("sliding") };
}
