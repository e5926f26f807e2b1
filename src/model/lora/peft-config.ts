// Reads adapter_config.json of a PEFT LoRA adapter: the few fields that say what the weights mean. Refuses the many
// variants of LoRA whose weights mean something else. vLLM draws nearly the same line.

import { join } from "node:path";
import { CheckpointError } from "../checkpoint/checkpoint-file.ts";
import { ConfigFields } from "../checkpoint/config-fields.ts";
import { readJsonObject } from "../checkpoint/json-file.ts";

export interface PeftConfig {
  rank: number;
  alpha: number;
  rankStabilised: boolean;
  /** Whether the adapter may have weights for this module ("model.layers.0.self_attn.q_proj"). */
  targets(module: string): boolean;
}

/** Fields that must be absent, null, false or empty, and what they would mean. */
const unsupported: Readonly<Record<string, string>> = {
  use_dora: "DoRA",
  modules_to_save: "fully trained modules beside the adapter",
  lora_bias: "a bias in B",
  fan_in_fan_out: "transposed weights",
  rank_pattern: "a rank of their own for some modules",
  alpha_pattern: "an alpha of their own for some modules",
  layer_replication: "repeated layers",
  target_parameters: "adapted parameters outside linear layers",
  trainable_token_indices: "trained embeddings",
  use_qalora: "QALoRA",
  use_bdlora: "block-diagonal LoRA",
  alora_invocation_tokens: "activated LoRA",
};

/** Initialisations that also change the base model's weights, so that the adapter alone is not the whole change. */
const ALTERS_BASE = /^(pissa|olora|corda|loftq|lora_ga)/;

/** `transposed`: whether the model stores linear weights [in, out], which PEFT notes as fan_in_fan_out. */
export function readPeftConfig(folder: string, transposed = false): PeftConfig {
  const file = join(folder, "adapter_config.json");
  const fields = new ConfigFields(file, readJsonObject(file, 2 ** 20));
  if (fields.text("peft_type") !== "LORA") throw fields.problem("peft_type", '"LORA", the only kind supported');
  if (fields.text("bias", "none") !== "none") throw fields.problem("bias", '"none" (trained biases are not supported)');
  for (const [key, meaning] of Object.entries(unsupported)) {
    if (key === "fan_in_fan_out" && transposed) continue;
    if (isSet(fields.raw(key))) throw new CheckpointError(file, `${key} asks for ${meaning}, which is not supported`);
  }
  const initialisation = fields.raw("init_lora_weights");
  if (typeof initialisation === "string" && ALTERS_BASE.test(initialisation.toLowerCase())) {
    throw fields.problem(
      "init_lora_weights",
      "an initialisation that leaves the base weights alone: convert the adapter to plain LoRA",
    );
  }
  return {
    rank: fields.count("r"),
    alpha: fields.between("lora_alpha", -1e9, 1e9),
    rankStabilised: fields.flag("use_rslora", false),
    targets: targetTest(fields),
  };
}

function isSet(value: unknown): boolean {
  if (value === undefined || value === false) return false;
  return typeof value !== "object" || Object.keys(value as object).length > 0;
}

/**
 * A list names modules by their last parts. A string is "all-linear" or a Python regular expression. Expressions are not
 * evaluated, because a hostile one could hang; any weights in the file are accepted.
 */
function targetTest(fields: ConfigFields): (module: string) => boolean {
  const among = (key: string): ((module: string) => boolean) => {
    const names = fields.texts(key);
    return (module) => names.some((name) => module === name || module.endsWith(`.${name}`));
  };
  const isTarget = typeof fields.raw("target_modules") === "string" ? () => true : among("target_modules");
  const isExcluded = Array.isArray(fields.raw("exclude_modules")) ? among("exclude_modules") : () => false;
  const layers = layersToTransform(fields);
  const isInLayer = (module: string) => layers?.has(Number(/\.(?:layers|h)\.(\d+)\./.exec(module)?.[1])) ?? true;
  return (module) => isTarget(module) && !isExcluded(module) && isInLayer(module);
}

/** null = all. */
function layersToTransform(fields: ConfigFields): ReadonlySet<number> | null {
  const key = "layers_to_transform";
  const given = fields.raw(key);
  if (given === undefined) return null;
  const layers = Array.isArray(given) ? given : [given];
  if (!layers.every((layer) => Number.isSafeInteger(layer) && layer >= 0)) {
    throw fields.problem(key, "a layer's number or a list of them");
  }
  return new Set(layers as number[]);
}
