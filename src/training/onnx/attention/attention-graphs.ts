// Graphs for the attention of some queries of one sequence over all keys that they may see. They have no weights, so
// all layers share them. A forward graph is a plain softmax, or has exactly the bits of serving, for either form of its
// attention. Rounded weights need that, because a difference in the last bit can flip a rounded activation. The backward
// graph computes the softmax again, because keeping it would take memory that grows with the square of the length.
// If serving rounds keys and values to float16, so do both graphs; a gradient passes the rounding unchanged.
//
// Inputs: q [c, numHeads * headDim] · k, v [s, kvHeads * headDim] · mask [c, s], 0 or -inf.

import { FLYWHEEL, Graph, type Value } from "../../../graph/graph.ts";
import {
  add,
  concat,
  ints,
  matmul,
  matmulTransposed,
  mul,
  reduceSum,
  reshape,
  scalar,
  scaledMatmul,
  softmax,
  sub,
  transpose,
  transposedMatmul,
} from "../../../graph/ops.ts";
import { blockwiseAttention, scoresOf } from "../../../model/attention/blockwise-attention.ts";
import type { CacheType } from "../../../model/attention/cache-type.ts";
import { attentionAttributes } from "../../../model/attention/kernel-attention.ts";
import type { ModelConfig } from "../../../model/checkpoint/model-config.ts";

interface AttentionInputs {
  q: Value;
  k: Value;
  v: Value;
  mask: Value;
}

function attentionInputs(g: Graph, config: ModelConfig, cacheType: CacheType): AttentionInputs {
  return { ...projectionInputs(g, config, cacheType), mask: g.input("mask", ["c", "s"]) };
}

/** Keys and values as the cache would hold them. */
function projectionInputs(g: Graph, { numHeads, numKvHeads, headDim }: ModelConfig, cacheType: CacheType) {
  const q = g.input("q", ["c", numHeads * headDim]);
  const held = (name: string) => {
    const x = g.input(name, ["s", numKvHeads * headDim]);
    return cacheType === "float32" ? x : g.add("RoundToHalf", [x], [{ shape: x.shape }], {}, FLYWHEEL)[0]!;
  };
  return { q, k: held("k"), v: held("v") };
}

/** Output: attended [c, numHeads * headDim]. */
export function plainForward(config: ModelConfig): Graph {
  const g = new Graph();
  const { weights, values } = attentionWeights(g, config, attentionInputs(g, config, "float32"));
  g.output("attended", fromHeads(g, config, matmul(g, weights, values)));
  return g;
}

/** The same in the order of the native module. Input instead of mask: window int64 [1], 0 = none. */
export function kernelForward(config: ModelConfig, positionsPerBlock: number, cacheType: CacheType): Graph {
  const g = new Graph();
  const { q, k, v } = projectionInputs(g, config, cacheType);
  const operands = [q, k, v, g.input("window", [1], "int64")];
  const attributes = attentionAttributes(config, positionsPerBlock);
  g.output("attended", g.add("PlainAttention", operands, [{ shape: q.shape }], attributes, FLYWHEEL)[0]!);
  return g;
}

/** The same in the order of serving's graph. Instead of mask it has the inputs of blockwiseAttention. */
export function blockwiseForward(config: ModelConfig, positionsPerBlock: number): Graph {
  const { numHeads, numKvHeads, headDim } = config;
  const g = new Graph();
  const q = g.input("q", ["t", numHeads * headDim]);
  const keys = (name: string, count: string) => g.input(name, [count, numKvHeads * headDim]);
  const [k, v, ownKey, ownValue] = [keys("k", "s"), keys("v", "s"), keys("own_k", "t"), keys("own_v", "t")];
  const mask = g.input("block_mask", ["nb", 1, 1, "t", positionsPerBlock]);
  const places = g.input("places", ["places"], "int64");
  g.output("attended", blockwiseAttention(g, config, positionsPerBlock, { q, ownKey, ownValue, k, v, mask, places }));
  return g;
}

/**
 * Further inputs: attended, dattended. Outputs: dq, dk, dv.
 * With the weights P and dP = dO · Vᵀ: dS = P * (dP - sum(dP * P)). That sum equals dO · O, a product of short rows.
 */
export function attentionBackward(config: ModelConfig, cacheType: CacheType): Graph {
  const g = new Graph();
  const inputs = attentionInputs(g, config, cacheType);
  const { queries, keys, values, scores, weights } = attentionWeights(g, config, inputs);
  const [o, dO] = ["attended", "dattended"].map((name) => toHeads(g, config, g.input(name, inputs.q.shape)));
  const dWeights = sub(g, matmulTransposed(g, dO!, values), reduceSum(g, mul(g, dO!, o!), 2, true));
  const dScores = beforeCap(g, config, scores, mul(g, weights, dWeights));
  const { attentionScale: scale, numKvHeads, headDim } = config;
  g.output("dq", fromHeads(g, config, scaledMatmul(g, dScores, keys, scale)));
  const flat = (x: Value) => reshape(g, transpose(g, x, [1, 0, 2]), ["s", numKvHeads * headDim]);
  g.output("dk", flat(transposedMatmul(g, dScores, queries, scale)));
  g.output("dv", flat(transposedMatmul(g, weights, dO!)));
  return g;
}

/** Query heads that share a key head are rows of one matrix: queries are [kvHeads, group * c, headDim]. */
function attentionWeights(g: Graph, config: ModelConfig, { q, k, v, mask }: AttentionInputs) {
  const { numHeads, numKvHeads, headDim } = config;
  const byHead = (x: Value) => transpose(g, reshape(g, x, ["s", numKvHeads, headDim]), [1, 0, 2]);
  const [queries, keys, values] = [toHeads(g, config, q), byHead(k), byHead(v)];
  const scores = scoresOf(g, config, queries, keys);
  const shapeOf = (x: Value) => g.add("Shape", [x], [{ shape: [x.shape.length], dtype: "int64" }])[0]!;
  const group = numHeads / numKvHeads;
  const grid = concat(g, [ints(g, [numKvHeads, group]), shapeOf(mask)], 0);
  const reshaped = g.add("Reshape", [scores, grid], [{ shape: [numKvHeads, group, "c", "s"] }])[0]!;
  const visible = softmax(g, add(g, reshaped, mask));
  const weights = g.add("Reshape", [visible, shapeOf(scores)], [{ shape: scores.shape }])[0]!;
  return { queries, keys, values, scores, weights };
}

/** The gradient before the soft cap c: that of c * tanh(s / c), where it is y, is 1 - (y / c)². */
function beforeCap(g: Graph, { attentionSoftcap: cap }: ModelConfig, scores: Value, dScores: Value): Value {
  if (cap === null) return dScores;
  const share = mul(g, scores, scalar(g, 1 / cap));
  return mul(g, dScores, sub(g, scalar(g, 1), mul(g, share, share)));
}

/** [c, numHeads * headDim] -> [kvHeads, group * c, headDim]. */
function toHeads(g: Graph, { numHeads, numKvHeads, headDim }: ModelConfig, x: Value): Value {
  const split = reshape(g, x, ["c", numKvHeads, numHeads / numKvHeads, headDim]);
  return reshape(g, transpose(g, split, [1, 2, 0, 3]), [numKvHeads, "gc", headDim]);
}

function fromHeads(g: Graph, { numHeads, numKvHeads, headDim }: ModelConfig, x: Value): Value {
  const split = reshape(g, x, [numKvHeads, numHeads / numKvHeads, "c", headDim]);
  return reshape(g, transpose(g, split, [2, 0, 1, 3]), ["c", numHeads * headDim]);
}
