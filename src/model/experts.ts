// Sparse experts: a router chooses a few small MLPs for each row, and only those are computed. The rows of all choices
// are put in the order of their experts, go through the experts' linear layers as through one, and come back. What a row gets
// does not depend on the other rows: each product has its own rows, and a row's results are added in the order of its
// choices.

import type { Graph, Value } from "../graph/graph.ts";
import {
  div,
  gather,
  ints,
  less,
  matmul,
  mul,
  reduceSum,
  reshape,
  scatterLast,
  softmax,
  split,
  sub,
  topK,
} from "../graph/ops.ts";
import type { ModelConfig } from "./checkpoint/model-config.ts";
import type { ExpertsConfig } from "./families/family.ts";

export interface ExpertParts {
  config: ExpertsConfig;
  /** x: [n, hidden] -> [n, experts]. */
  router(g: Graph, x: Value): Value;
  /**
   * Each row through the MLP of its expert. x: [.., hidden], in the order of the experts. bounds: int64 [1] each; expert e
   * has the rows bounds[e] .. bounds[e + 1] - 1.
   */
  mlp(g: Graph, x: Value, bounds: readonly Value[]): Value;
}

/** x: [n, hidden] or [n, 1, hidden]. */
export function expertMlp(g: Graph, config: ModelConfig, parts: ExpertParts, x: Value): Value {
  const { perToken } = parts.config;
  const [n, hidden] = [x.shape[0]!, config.hiddenSize];
  const rows = reshape(g, x, [n, hidden]);
  const { weights, order, places, bounds } = route(g, parts.config, parts.router(g, rows));
  const apart = (at: Graph, value: Value) => reshape(at, value, [n, perToken, hidden]);

  const sorted = gather(g, rows, div(g, order, ints(g, [perToken])));
  g.defineGradient(sorted, [rows], (at, dy) => [reduceSum(at, apart(at, gather(at, dy, places)), 1)]);
  const mixed = parts.mlp(g, sorted, bounds);
  const back = gather(g, mixed, places);
  g.defineGradient(back, [mixed], (at, dy) => [gather(at, dy, order)]);
  const sum = matmul(g, reshape(g, weights, [n, 1, perToken]), apart(g, back));
  return reshape(g, sum, x.shape);
}

interface Route {
  /** [n, perToken]: factors of the chosen experts. */
  weights: Value;
  /** int64 [n * perToken]: choices in the order of their experts; choice i belongs to row i / perToken. */
  order: Value;
  /** int64 [n * perToken]: where each choice is in that order. */
  places: Value;
  /** See ExpertParts.mlp. */
  bounds: Value[];
}

function route(g: Graph, { count, perToken, normalised }: ExpertsConfig, logits: Value): Route {
  const probabilities = softmax(g, logits);
  const [highest, chosen] = topK(g, probabilities, ints(g, [perToken]), "largest");
  const weights = normalised ? div(g, highest, reduceSum(g, highest, 1, true)) : highest;
  g.defineGradient(weights, [logits], (at, dy) => {
    const through = mul(at, weights, dy);
    const total = reduceSum(at, through, 1, true);
    // Over the chosen ones alone, or over all, the weights are a softmax of the logits.
    if (normalised) return [scatterLast(at, logits, chosen, sub(at, through, mul(at, weights, total)))];
    return [sub(at, scatterLast(at, logits, chosen, through), mul(at, probabilities, total))];
  });
  const experts = reshape(g, chosen, ["choices"]);
  const [size] = g.add("Shape", [experts], [{ shape: [1], dtype: "int64" }]);
  const order = topK(g, experts, size!, "smallest")[1];
  const places = topK(g, order, size!, "smallest")[1];
  return { weights, order, places, bounds: boundsOf(g, experts, count) };
}

/** How many of these experts come before expert 0, 1, .. `count`. */
function boundsOf(g: Graph, experts: Value, count: number): Value[] {
  const all = ints(
    g,
    Array.from({ length: count + 1 }, (_, i) => i),
  );
  const before = less(g, reshape(g, experts, ["choices", 1]), all);
  const [numbers] = g.add("Cast", [before], [{ shape: before.shape, dtype: "int64" }], { to: INT64 });
  return split(g, reduceSum(g, numbers!, 0), 0, new Array(count + 1).fill(1));
}

/** ONNX's number for the type. */
const INT64 = 7;
