// Adapters of the serving graph in operations of the runtime. The factors of all adapters in a step lie side by side, and
// a mask per row, 0 or the scale, picks the row's own: y += ((x · A) * mask) · B. In a step without adapters the factors
// have rank 0. That costs no arithmetic, but each input still costs a microsecond.
//
// A linear layer made of p stored ones (q, k, v) has p factors per adapter. Column (slot * p + part) * rank + i of A is column i
// of that adapter's factor for that part; B holds each part's factor in the outputs of that part, zeros elsewhere.
// `rank` is the same power of two for all slots. So a row's sum splits at the same places whatever its slot is, and the
// result does not depend on who else is in the batch.

import type { Graph, Value } from "../../graph/graph.ts";
import { add, mul, reshape } from "../../graph/ops.ts";
import { siteShape } from "../checkpoint/expected-tensors.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import { type Site, sitesOf } from "../families/tensor-names.ts";
import { narrowed, widened } from "./lora-products.ts";
import type { ServedLora } from "./served-lora.ts";

/** Graph inputs: lora_mask.P [n, P * columns] for each number of parts P, lora_a.L.SITE, lora_b.L.SITE. */
export function graphLora(g: Graph, config: ModelConfig): ServedLora {
  const masks = new Map<number, Value>();
  const factors = config.layers.map((ofModel, layer) => {
    const ofLayer = {} as Record<Site, { a: Value; b: Value; mask: Value }>;
    for (const site of sitesOf(ofModel)) {
      const parts = ofModel.maps[site].length;
      const columns = `lora${parts}`;
      if (!masks.has(parts)) masks.set(parts, g.input(`lora_mask.${parts}`, ["n", columns]));
      const { inputs, out } = siteShape(config, layer, site);
      ofLayer[site] = {
        a: g.input(`lora_a.${layer}.${site}`, [inputs, columns]),
        b: g.input(`lora_b.${layer}.${site}`, [columns, out]),
        mask: masks.get(parts)!,
      };
    }
    return ofLayer;
  });
  return {
    adapted(at, layer, site, x, y, rowsOf) {
      const { a, b, mask } = factors[layer]![site];
      const delta = widened(at, mul(at, narrowed(at, x, a), rowsOf(mask)), b);
      return add(at, y, reshape(at, delta, x.shape.with(2, b.shape[1]!)));
    },
  };
}
