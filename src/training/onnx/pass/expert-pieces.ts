// Experts in the pieces of a layer (layer-pieces.ts). Their weights and the router's stay as they are: only gradients
// with respect to their inputs pass through them. The results of their products are kept for the backward pass.

import type { Dim, Graph, Value } from "../../../graph/graph.ts";
import type { ModelConfig } from "../../../model/checkpoint/model-config.ts";
import { everyExpert } from "../../../model/expert-rows.ts";
import type { ExpertParts } from "../../../model/experts.ts";
import type { ExpertsConfig } from "../../../model/families/family.ts";
import { gatedMlp, type MlpLinear, type MlpSite } from "../../../model/mlp.ts";
import type { WeightSource } from "../../../model/weight-source.ts";

export const KEPT_OF_EXPERTS = ["kept.router", "kept.experts.gateUp", "kept.experts.down"];

/** The products of a layer's experts, in one direction. */
export type ExpertProducts = (
  config: ModelConfig,
  weights: WeightSource,
  layer: number,
  experts: ExpertsConfig,
) => {
  router: ExpertParts["router"];
  /** x and bounds as for ExpertParts.mlp. */
  linear(g: Graph, site: MlpSite, x: Value, bounds: readonly Value[]): Value;
};

export const forwardExperts: ExpertProducts = (_, weights, layer) => ({
  router: (g, x) => weights.router(g, layer, x),
  linear: (g, site, x, bounds) =>
    everyExpert(g, x, bounds, (at, expert, rows) => weights.expertSite(at, layer, expert, site, rows)),
});

export const backwardExperts: ExpertProducts = ({ hiddenSize }, weights, layer, experts) => ({
  router: (g, x) =>
    placeholder(g, "router", ["n", experts.count], x, (at, dy) => weights.routerGradient(at, layer, dy)),
  linear: (g, site, x, bounds) => {
    const shape = ["choices", site === "down" ? hiddenSize : 2 * experts.intermediateSize];
    return placeholder(g, `experts.${site}`, shape, x, (at, dy) =>
      everyExpert(at, dy, bounds, (to, expert, rows) => weights.expertSiteGradient(to, layer, expert, site, rows)),
    );
  },
});

/** Experts with these products, which get their names in `values`. */
export function trainedExperts(
  { activation }: ModelConfig,
  experts: ExpertsConfig,
  products: ReturnType<ExpertProducts>,
  values: Map<string, Value>,
): ExpertParts {
  const named = (name: string, value: Value): Value => {
    values.set(`kept.${name}`, value);
    return value;
  };
  const sizes = { activation, intermediateSize: experts.intermediateSize };
  return {
    config: experts,
    router: (g, x) => named("router", products.router(g, x)),
    mlp: (g, x, bounds) => {
      const linear: MlpLinear = (at, site, value) => named(`experts.${site}`, products.linear(at, site, value, bounds));
      return gatedMlp(g, sizes, linear, x);
    },
  };
}

/** A product in the trace of the backward pass. It is kept or not needed: only its gradient is computed. */
export function placeholder(
  g: Graph,
  name: string,
  shape: readonly Dim[],
  x: Value,
  gradient: (at: Graph, dy: Value) => Value,
): Value {
  const product = g.add("Identity", [g.input(`product.${name}`, shape)], [{ shape }])[0]!;
  g.defineGradient(product, [x], (at, dy) => [gradient(at, dy)]);
  return product;
}
