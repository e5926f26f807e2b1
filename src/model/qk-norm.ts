// RMS norms of queries and keys, which lie side by side in one tensor [n, numHeads + numKvHeads, 1, headDim].

import type { Graph, Value } from "../graph/graph.ts";
import { concat, mul, ones, reshape, rmsNorm, split } from "../graph/ops.ts";
import type { ModelConfig } from "./checkpoint/model-config.ts";

export interface QkNormWeights {
  name: string;
  q: Float32Array;
  k: Float32Array;
}

export type QkNorm = (g: Graph, x: Value) => Value;

/** Over each head by itself. Weights: [headDim], the same for all query heads and for all key heads. */
export function headNorm(g: Graph, config: ModelConfig, { name, q, k }: QkNormWeights): QkNorm {
  const { numHeads, numKvHeads, headDim, normEps } = config;
  const weights = new Float32Array((numHeads + numKvHeads) * headDim);
  for (let head = 0; head < numHeads + numKvHeads; head++) weights.set(head < numHeads ? q : k, head * headDim);
  // The norm has no weights, so that one serves both.
  const byHead = g.initializer(name, [numHeads + numKvHeads, 1, headDim], weights);
  return (at, x) => mul(at, rmsNorm(at, x, ones(at, headDim), normEps), byHead);
}

/** Over all query heads of a token together, and over all its key heads. Weights: [numHeads * headDim], [numKvHeads * headDim]. */
export function widthNorm(g: Graph, config: ModelConfig, { name, q, k }: QkNormWeights): QkNorm {
  const { numHeads, numKvHeads, headDim, normEps } = config;
  const weights = [g.initializer(`${name}.q`, [q.length], q), g.initializer(`${name}.k`, [k.length], k)];
  return (at, x) => {
    const normed = split(at, x, 1, [numHeads, numKvHeads]).map((heads, i) => {
      const flat = reshape(at, heads, ["n", weights[i]!.shape[0]!]);
      return reshape(at, rmsNorm(at, flat, weights[i]!, normEps), ["n", heads.shape[1]!, 1, headDim]);
    });
    return concat(at, normed, 1);
  };
}
