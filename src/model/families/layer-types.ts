// Finds the layers with a sliding window, for families that mix both kinds and may list them in `layer_types`.

import type { ConfigFields } from "../checkpoint/config-fields.ts";

/** `slides` decides when `layer_types` is absent. `window` is null when the configuration switches windows off. */
export function windowsByLayer(
  fields: ConfigFields,
  numLayers: number,
  window: number | null,
  slides: (layer: number) => boolean,
): (number | null)[] {
  if (fields.raw("layer_types") === undefined) {
    return Array.from({ length: numLayers }, (_, layer) => (slides(layer) ? window : null));
  }
  const types = fields.texts("layer_types");
  if (types.length !== numLayers) throw fields.problem("layer_types", `a list of ${numLayers}, one per layer`);
  return types.map((type) => {
    if (type === "full_attention") return null;
    if (type !== "sliding_attention") {
      throw fields.problem("layer_types", `made of "full_attention" and "sliding_attention" (not "${type}")`);
    }
    if (window === null) {
      throw fields.problem("layer_types", '"full_attention" in every layer, as sliding_window is null or switched off');
    }
    return window;
  });
}
