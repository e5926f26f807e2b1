// The blocks between attention and the next layer.

import type { Graph, Value } from "../graph/graph.ts";
import { geluTanh, mul, silu, split } from "../graph/ops.ts";
import type { ModelConfig } from "./checkpoint/model-config.ts";

export type MlpConfig = Pick<ModelConfig, "activation" | "intermediateSize">;

export type MlpSite = "gateUp" | "down";

/** The stored linear layers of a site as one. */
export type MlpLinear = (g: Graph, site: MlpSite, x: Value) => Value;

/** down(activation(gate(x)) * up(x)) */
export function gatedMlp(g: Graph, config: MlpConfig, linear: MlpLinear, x: Value): Value {
  const gateUp = linear(g, "gateUp", x);
  const [gate, up] = split(g, gateUp, gateUp.shape.length - 1, [config.intermediateSize, config.intermediateSize]);
  return linear(g, "down", mul(g, activated(g, config, gate!), up!));
}

/** down(activation(up(x))) */
export function plainMlp(g: Graph, config: MlpConfig, linear: MlpLinear, x: Value): Value {
  return linear(g, "down", activated(g, config, linear(g, "gateUp", x)));
}

function activated(g: Graph, { activation }: MlpConfig, x: Value): Value {
  return activation === "silu" ? silu(g, x) : geluTanh(g, x);
}
