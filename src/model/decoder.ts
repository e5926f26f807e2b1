// The one definition of a decoder-only transformer, as a traced function. Serving and training both use it. They differ
// in how attention sees the past and in what a linear map is (plain, rounded, with adapters), and pass these in.

import type { Graph, Value } from "../graph/graph.ts";
import { add, geluTanh, mul, ones, reshape, rmsNorm, rotary, silu, split } from "../graph/ops.ts";
import type { LinearName } from "./checkpoint/expected-tensors.ts";
import type { ModelConfig } from "./checkpoint/model-config.ts";

/** Linear maps as the decoder uses them. Maps with the same input are one site. */
export const SITES = ["qkv", "o", "gateUp", "down"] as const;
export type Site = (typeof SITES)[number];

/** The stored maps of each site, in order of their outputs. */
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
  /** [numHeads + numKvHeads, 1, headDim]: weights of the query norm, then of the key norm. */
  qkNorm: Value | null;
  /** [n, headDim / 2] each: one row per row of the hidden states. */
  cos: Value;
  sin: Value;
  linear(g: Graph, site: Site, x: Value): Value;
  /** q: [n, numHeads, 1, headDim]; k, v: [n, numKvHeads, 1, headDim] -> x with numHeads * headDim. */
  attention(g: Graph, q: Value, k: Value, v: Value): Value;
  /** Picks the rows, of x or of attention's result, that go on after attention. */
  onward(g: Graph, x: Value): Value;
}

export interface LayerResult {
  /** The rows that go on, in the shape of the input. */
  x: Value;
  /** Keys and values for the cache: [n, numKvHeads, 1, headDim]. */
  k: Value;
  v: Value;
}

/** x: [n, hidden] or [n, 1, hidden], as are the results of linear and attention; rows: int64 [n, 1] = 0 .. n-1. */
export function decoderLayer(g: Graph, config: ModelConfig, parts: LayerParts, x: Value, rows: Value): LayerResult {
  const eps = config.rmsNormEps;
  const { q, k, v } = project(g, config, parts, rmsNorm(g, x, parts.attentionNorm, eps), rows);
  let attended = parts.linear(g, "o", parts.onward(g, parts.attention(g, q, k, v)));
  if (parts.attentionPostNorm !== null) attended = rmsNorm(g, attended, parts.attentionPostNorm, eps);
  const middle = add(g, parts.onward(g, x), attended);

  const gateUp = parts.linear(g, "gateUp", rmsNorm(g, middle, parts.mlpNorm, eps));
  const [gate, up] = split(g, gateUp, gateUp.shape.length - 1, [config.intermediateSize, config.intermediateSize]);
  const activated = config.activation === "silu" ? silu(g, gate!) : geluTanh(g, gate!);
  let mixed = parts.linear(g, "down", mul(g, activated, up!));
  if (parts.mlpPostNorm !== null) mixed = rmsNorm(g, mixed, parts.mlpPostNorm, eps);
  return { x: add(g, middle, mixed), k, v };
}

function project(g: Graph, config: ModelConfig, parts: LayerParts, x: Value, rows: Value) {
  const { numHeads, numKvHeads, headDim, rmsNormEps } = config;
  const heads = reshape(g, parts.linear(g, "qkv", x), ["n", numHeads + 2 * numKvHeads, 1, headDim]);
  const [joined, v] = split(g, heads, 1, [numHeads + numKvHeads, numKvHeads]);
  // Queries and keys lie side by side, so one norm and one rotation serve both.
  let turned = joined!;
  if (parts.qkNorm !== null) turned = mul(g, rmsNorm(g, turned, ones(g, headDim), rmsNormEps), parts.qkNorm);
  const [q, k] = split(g, rotary(g, turned, rows, parts.cos, parts.sin), 1, [numHeads, numKvHeads]);
  return { q: q!, k: k!, v: v! };
}
