// Qwen 2 and 2.5: biases on the query, key and value projections. A sliding window only if it is switched on, and then
// only in the layers from max_window_layers on.

import type { ConfigFields } from "../checkpoint/config-fields.ts";
import { type Family, llamaNaming, plainTraits } from "./family.ts";
import { windowsByLayer } from "./layer-types.ts";

export const qwenDefaults = {
  num_key_value_heads: 32,
  max_position_embeddings: 32_768,
  sliding_window: 4096,
  max_window_layers: 28,
  rms_norm_eps: 1e-6,
  tie_word_embeddings: false,
  hidden_act: "silu",
};

export const qwen2: Family = {
  name: "qwen2",
  modelTypes: ["qwen2"],
  architectures: ["Qwen2ForCausalLM"],
  defaults: qwenDefaults,
  ...llamaNaming,
  traits(fields, numLayers) {
    return { ...plainTraits, qkvBias: true, windows: qwenWindows(fields, numLayers) };
  },
};

/** Shared with Qwen 3. */
export function qwenWindows(fields: ConfigFields, numLayers: number): (number | null)[] {
  const on = fields.flag("use_sliding_window", false) && fields.raw("sliding_window") !== undefined;
  const firstSliding = fields.between("max_window_layers", 0, Number.MAX_SAFE_INTEGER);
  return windowsByLayer(
    fields,
    numLayers,
    on ? fields.count("sliding_window") : null,
    (layer) => layer >= firstSliding,
  );
}
