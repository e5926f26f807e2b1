// The one definition of a decoder-only transformer, as a traced function. Serving and training both use it. They differ
// in how attention sees the past and in what a linear layer is (plain, rounded, with adapters), and pass these in.
// Families differ in norms, rotation, MLP and factors; a part that a family does not have changes nothing.

import type { Graph, Value } from "../graph/graph.ts";
import { add, mul, reshape, rotary, scalar, softcap, split } from "../graph/ops.ts";
import type { ModelConfig } from "./checkpoint/model-config.ts";
import { type ExpertParts, expertMlp } from "./experts.ts";
import type { Site } from "./families/tensor-names.ts";
import { gatedMlp, plainMlp } from "./mlp.ts";

type Change = (g: Graph, x: Value) => Value;

/** The norms of one layer. */
export interface LayerNorms {
  attention: Change;
  attentionPost: Change;
  mlp: Change;
  mlpPost: Change;
  /** x: [n, numHeads + numKvHeads, 1, headDim], queries before keys; null = none. */
  queriesAndKeys: Change | null;
}

/** cos, sin: [n, half of the rotated dimensions], one row per row of the hidden states. */
export interface Rope {
  cos: Value;
  sin: Value;
}

/** Queries, keys and values of a layer before they are rotated. */
export interface Heads {
  /** [n, numHeads + 2 * numKvHeads, 1, headDim]: queries, keys, values. */
  all: Value;
  /** Queries and keys after their norm: [n, numHeads + numKvHeads, 1, headDim]; null = they have none. */
  normed: Value | null;
  /** null = no rotation. */
  rope: Rope | null;
  /** int64 [n, 1] = 0 .. n-1 */
  rows: Value;
}

/** One layer, in values of the graph. */
export interface LayerParts {
  norms: LayerNorms;
  /** null = no rotation. */
  rope: Rope | null;
  /** The stored linear layers of a site as one. */
  linear(g: Graph, site: Site, x: Value): Value;
  /** In place of the MLP; null = an MLP. */
  experts: ExpertParts | null;
  /** Returns numHeads * headDim numbers for each row that goes on. */
  attention(g: Graph, heads: Heads): Value;
  /** Picks the rows of x that go on after attention. */
  onward(g: Graph, x: Value): Value;
}

/**
 * x: [n, hidden] or [n, 1, hidden], as are the results of linear and attention; rows: int64 [n, 1] = 0 .. n-1. Returns the
 * rows that go on.
 */
export function decoderLayer(g: Graph, config: ModelConfig, parts: LayerParts, x: Value, rows: Value): Value {
  const { norms } = parts;
  const heads = project(g, config, parts, norms.attention(g, x), rows);
  const attended = parts.linear(g, "o", parts.attention(g, heads));
  const middle = add(g, parts.onward(g, x), scaled(g, norms.attentionPost(g, attended), config.residualScale));
  const mixed = mlp(g, config, parts, norms.mlp(g, middle));
  return add(g, middle, scaled(g, norms.mlpPost(g, mixed), config.residualScale));
}

/** Logits of the output head's products. */
export function finishLogits(g: Graph, { logitScale, logitSoftcap }: ModelConfig, products: Value): Value {
  const logits = scaled(g, products, logitScale);
  return logitSoftcap === null ? logits : softcap(g, logits, logitSoftcap);
}

/** Queries [n, numHeads, 1, headDim], rotated keys and values [n, numKvHeads, 1, headDim]. */
export function turnedHeads(g: Graph, config: ModelConfig, { all, normed, rope, rows }: Heads): [Value, Value, Value] {
  const { numHeads, numKvHeads } = config;
  const [joined, v] = split(g, all, 1, [numHeads + numKvHeads, numKvHeads]);
  const still = normed ?? joined!;
  // Queries and keys lie side by side, so one rotation serves both.
  const turned = rope === null ? still : rotary(g, still, rows, rope.cos, rope.sin);
  const [q, k] = split(g, turned, 1, [numHeads, numKvHeads]);
  return [q!, k!, v!];
}

function project(g: Graph, config: ModelConfig, parts: LayerParts, x: Value, rows: Value): Heads {
  const { numHeads, numKvHeads, headDim } = config;
  const all = reshape(g, parts.linear(g, "qkv", x), ["n", numHeads + 2 * numKvHeads, 1, headDim]);
  const { queriesAndKeys } = parts.norms;
  const normed =
    queriesAndKeys === null ? null : queriesAndKeys(g, split(g, all, 1, [numHeads + numKvHeads, numKvHeads])[0]!);
  return { all, normed, rope: parts.rope, rows };
}

const MLPS = { gated: gatedMlp, plain: plainMlp };

function mlp(g: Graph, config: ModelConfig, { linear, experts }: LayerParts, x: Value): Value {
  return experts === null ? MLPS[config.mlp](g, config, linear, x) : expertMlp(g, config, experts, x);
}

function scaled(g: Graph, x: Value, factor: number): Value {
  return factor === 1 ? x : mul(g, x, scalar(g, factor));
}
