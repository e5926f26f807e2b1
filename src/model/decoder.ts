// The one definition of a decoder-only transformer, as a traced function. Serving and training build on it: they differ
// in how attention sees the past and in what a linear map is (plain, rounded, with adapters), and pass these in.

import type { Graph, Value } from "../graph/graph.ts";
import { add, geluTanh, mul, reshape, rmsNorm, rotary, silu, split } from "../graph/ops.ts";
import type { LinearName } from "./expected-tensors.ts";
import type { ModelConfig } from "./model-config.ts";

/** Linear maps as the decoder uses them: those with the same input are one. */
export const sites = ["qkv", "o", "gateUp", "down"] as const;
export type Site = (typeof sites)[number];

/** The stored maps that make up each, in order of their outputs. */
export const siteParts: Readonly<Record<Site, readonly LinearName[]>> = {
  qkv: ["q", "k", "v"],
  o: ["o"],
  gateUp: ["gate", "up"],
  down: ["down"],
};

/** Weights of one layer, as values of the graph. Optional norms are null where the family has none. */
export interface LayerParts {
  attentionNorm: Value;
  attentionPostNorm: Value | null;
  mlpNorm: Value;
  mlpPostNorm: Value | null;
  qNorm: Value | null;
  kNorm: Value | null;
  /** [n, headDim / 2] each: one row per row of the hidden states. */
  cos: Value;
  sin: Value;
  linear(g: Graph, site: Site, x: Value): Value;
  /** q: [n, numHeads * headDim]; k, v: [n, numKvHeads * headDim] -> [n, numHeads * headDim]. */
  attention(g: Graph, q: Value, k: Value, v: Value): Value;
}

export interface LayerResult {
  /** [n, hidden] */
  x: Value;
  /** [n, numKvHeads * headDim]: what the cache must remember. */
  k: Value;
  v: Value;
}

/** x: [n, hidden]; rows: int64 [1, n] = 0 .. n-1. */
export function decoderLayer(g: Graph, config: ModelConfig, parts: LayerParts, x: Value, rows: Value): LayerResult {
  const eps = config.rmsNormEps;
  const { q, k, v } = project(g, config, parts, rmsNorm(g, x, parts.attentionNorm, eps), rows);
  let attended = parts.linear(g, "o", parts.attention(g, q, k, v));
  if (parts.attentionPostNorm !== null) attended = rmsNorm(g, attended, parts.attentionPostNorm, eps);
  const middle = add(g, x, attended);

  const gateUp = parts.linear(g, "gateUp", rmsNorm(g, middle, parts.mlpNorm, eps));
  const [gate, up] = split(g, gateUp, 1, [config.intermediateSize, config.intermediateSize]);
  const activated = config.activation === "silu" ? silu(g, gate!) : geluTanh(g, gate!);
  let mixed = parts.linear(g, "down", mul(g, activated, up!));
  if (parts.mlpPostNorm !== null) mixed = rmsNorm(g, mixed, parts.mlpPostNorm, eps);
  return { x: add(g, middle, mixed), k, v };
}

function project(g: Graph, config: ModelConfig, parts: LayerParts, x: Value, rows: Value) {
  const { numHeads, numKvHeads, headDim, rmsNormEps } = config;
  const qSize = numHeads * headDim;
  const kvSize = numKvHeads * headDim;
  const qkv = parts.linear(g, "qkv", x);
  if (parts.qNorm === null || parts.kNorm === null) {
    // Queries and keys lie side by side: one rotation serves both.
    const [qk, v] = split(g, qkv, 1, [qSize + kvSize, kvSize]);
    const [q, k] = split(g, rotary(g, qk!, parts.cos, parts.sin, rows), 1, [qSize, kvSize]);
    return { q: q!, k: k!, v: v! };
  }
  const [q, k, v] = split(g, qkv, 1, [qSize, kvSize, kvSize]);
  const normed = (x: Value, heads: number, weight: Value) => {
    const perHead = rmsNorm(g, reshape(g, x, ["n", heads, headDim]), weight, rmsNormEps);
    return rotary(g, reshape(g, perHead, ["n", heads * headDim]), parts.cos, parts.sin, rows);
  };
  return { q: normed(q!, numHeads, parts.qNorm), k: normed(k!, numKvHeads, parts.kNorm), v: v! };
}
