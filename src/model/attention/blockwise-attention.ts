// Attention of many tokens of one sequence over blocks of keys, summed in the order that paged-attention.ts defines.
// Prefill chunks use this form, and so does training, to get the same bits as serving.

import type { Dim, Graph, Value } from "../../graph/graph.ts";
import {
  add,
  atLeast,
  choose,
  div,
  exp,
  gather,
  greater,
  ints,
  matmul,
  matmulTransposed,
  max,
  mul,
  reduceMax,
  reduceSum,
  reshape,
  rowOfOnes,
  scalar,
  scaledMatmul,
  slice,
  softcap,
  sub,
  transpose,
} from "../../graph/ops.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";

/** Queries, own scores and own values of t tokens. */
export interface Tokens {
  /** [t, kvHeads, group, headDim]: the query heads that share a key head are a group. */
  query: Value;
  /** [t, kvHeads, group, 1]: see ownScores. */
  ownScore: Value;
  /** [t, kvHeads, 1, headDim] */
  value: Value;
}

export interface Blocks {
  /** [nb, kvHeads, positionsPerBlock, headDim] */
  keys: Value;
  /** [nb, kvHeads, headDim, positionsPerBlock] */
  values: Value;
  /** [nb, 1, 1, t, positionsPerBlock]: hides a token's own position and all later ones. */
  mask: Value;
}

/** Sums over the keys before each token; `withOwn` adds the token itself. The three tensors differ only in their last size. */
export interface Sums {
  /** [.., 1]: the largest score, the token's own included. */
  highest: Value;
  /** [.., 1]: the sum of the weights, exp(score - highest). */
  total: Value;
  /** [.., headDim]: the sum of the weighted values. */
  values: Value;
}

/** [t, kvHeads, group, headDim] */
export function attentionOverBlocks(g: Graph, config: ModelConfig, tokens: Tokens, blocks: Blocks): Value {
  const { query, ownScore, value } = tokens;
  const { highest, total, values } = sumsOverBlocks(g, config, byHead(g, query), byHead(g, ownScore), blocks);
  return withOwn(
    g,
    { highest: byToken(g, highest), total: byToken(g, total), values: byToken(g, values) },
    ownScore,
    value,
  );
}

/** Sums of [kvHeads, group, t, ..] from queries and own scores in that order, so that a mask is added to long runs of numbers. */
export function sumsOverBlocks(
  g: Graph,
  config: ModelConfig,
  queries: Value,
  ownScore: Value,
  { keys, values, mask }: Blocks,
): Sums {
  const { numHeads, numKvHeads, headDim } = config;
  const positionsPerBlock = keys.shape[2] as number;
  const group = numHeads / numKvHeads;
  const query = reshape(g, queries, [1, numKvHeads, "gt", headDim]);
  const scores = scoresOf(g, config, query, keys);
  const [grid] = g.add(
    "Reshape",
    [scores, ints(g, [0, numKvHeads, group, -1, positionsPerBlock])],
    [{ shape: ["nb", numKvHeads, group, "t", positionsPerBlock] }],
  );
  const masked = add(g, grid!, mask);
  const highest = max(g, reduceMax(g, reduceMax(g, masked, 4, true), 0), ownScore);
  // Repeated over the block's positions by a product: broadcasting inside the subtraction takes twice as long.
  const weights = weightsOf(g, masked, matmul(g, highest, rowOfOnes(g, positionsPerBlock)));
  const [flat] = g.add(
    "Reshape",
    [weights, ints(g, [0, numKvHeads, -1, positionsPerBlock])],
    [{ shape: ["nb", numKvHeads, "gt", positionsPerBlock] }],
  );
  return {
    highest,
    total: reduceSum(g, reduceSum(g, weights, 4, true), 0),
    values: sumInOrder(g, matmulTransposed(g, flat!, values), [numKvHeads, group, "t", headDim]),
  };
}

/** Attention from the sums over the keys before each token and its own score and value, in any order of dimensions. */
export function withOwn(g: Graph, sums: Sums, ownScore: Value, ownValue: Value): Value {
  const ownWeight = exp(g, sub(g, ownScore, sums.highest));
  return div(g, add(g, sums.values, mul(g, ownWeight, ownValue)), add(g, sums.total, ownWeight));
}

/** [t, kvHeads, group, ..] -> [kvHeads, group, t, ..] */
export function byHead(g: Graph, x: Value): Value {
  return transpose(g, x, [1, 2, 0, 3]);
}

/** [kvHeads, group, t, ..] -> [t, kvHeads, group, ..] */
export function byToken(g: Graph, x: Value): Value {
  return transpose(g, x, [2, 0, 1, 3]);
}

/** Blocks of new keys and values, each [t, kvHeads * headDim] or [t, kvHeads, headDim]. places: see blockPlaces. */
export function keyBlocks(
  g: Graph,
  { numKvHeads, headDim }: ModelConfig,
  positionsPerBlock: number,
  places: Value,
  k: Value,
  v: Value,
): { keys: Value; values: Value } {
  const blocks = (x: Value) => reshape(g, gather(g, x, places), ["nb", positionsPerBlock, numKvHeads, headDim]);
  return { keys: transpose(g, blocks(k), [0, 2, 1, 3]), values: transpose(g, blocks(v), [0, 2, 3, 1]) };
}

/**
 * [nb * positionsPerBlock]: the row for each place in the blocks of `count` tokens, from row `first` on. The first block
 * already has `begun` positions, which come before all rows. Places after the last token repeat it: masks hide them, and
 * they are finite whenever the token's own result is.
 */
export function blockPlaces(first: number, count: number, positionsPerBlock: number, begun = 0): BigInt64Array {
  const places = new BigInt64Array(Math.ceil((begun + count) / positionsPerBlock) * positionsPerBlock);
  for (let i = 0; i < places.length; i++) places[i] = BigInt(i < begun ? i : first + Math.min(i, begun + count - 1));
  return places;
}

/**
 * Attention over all keys of a sequence at once, without a cache, for training. q: [t, numHeads * headDim]; ownKey,
 * ownValue: [t, kvHeads * headDim], of the same positions; k, v: [s, kvHeads * headDim]; mask: [nb, 1, 1, t,
 * positionsPerBlock] with nb = ceil(s / positionsPerBlock); places: those of all s keys.
 */
export function blockwiseAttention(
  g: Graph,
  config: ModelConfig,
  positionsPerBlock: number,
  inputs: Record<"q" | "ownKey" | "ownValue" | "k" | "v" | "mask" | "places", Value>,
): Value {
  const { q, ownKey, ownValue, k, v, mask, places } = inputs;
  const apart = (x: Value) => reshape(g, x, ["t", config.numKvHeads, 1, config.headDim]);
  const query = inGroups(g, config, q, "t");
  const ownScore = ownScores(g, config, query, apart(ownKey));
  const tokens = { query, ownScore, value: apart(ownValue) };
  const blocks = { ...keyBlocks(g, config, positionsPerBlock, places, k, v), mask };
  const attended = attentionOverBlocks(g, config, tokens, blocks);
  return reshape(g, attended, ["t", config.numHeads * config.headDim]);
}

/** Its exponential is about the smallest normal number. */
const LOWEST = -87;

/**
 * exp(scores - highest), exactly 0 where a score is -inf. An exponential that underflows takes the processor seven times as
 * long. So differences below LOWEST are raised to it, and exp(LOWEST) is subtracted from the result.
 */
export function weightsOf(g: Graph, scores: Value, highest: Value): Value {
  const lowest = scalar(g, LOWEST);
  return sub(g, exp(g, atLeast(g, sub(g, scores, highest), lowest)), exp(g, lowest));
}

/** The runtime splits the inner size of a product after this many terms. Up to there it adds them one after the other. */
const MOST_AT_ONCE = 128;

/**
 * x: [blocks, ...] -> shape: the blocks added one after the other. A product with a row of ones gives the same bits as the
 * runtime's own sum, in a third of the time for long rows.
 */
function sumInOrder(g: Graph, x: Value, shape: readonly Dim[]): Value {
  const blocks = x.shape[0]!;
  const [count] = g.add("Shape", [x], [{ shape: [1], dtype: "int64" }], { start: 0, end: 1 });
  const [flat] = g.add("Reshape", [x, ints(g, [0, -1])], [{ shape: [blocks, "size"] }]);
  const [sum] = choose(g, greater(g, count!, ints(g, [MOST_AT_ONCE])), [[1, "size"]], {
    yes: (sub) => [reduceSum(sub, flat!, 0, true)],
    no: (sub) => [process.arch === "x64" ? sumByOneRow(sub, flat!, count!) : sumByTwoRows(sub, flat!, count!)],
  });
  // Outside the branch: as a branch's result, a reshape would be a copy.
  return reshape(g, sum!, shape);
}

/** [blocks, size] -> [1, size]. On x64, any factor other than 1 keeps the runtime from using its kernel for single rows. */
function sumByOneRow(g: Graph, x: Value, count: Value): Value {
  const [twos] = g.add("Expand", [g.constant(Float32Array.of(2), [1, 1]), count], [{ shape: [1, x.shape[0]!] }]);
  return scaledMatmul(g, twos!, x, 0.5);
}

/** The same sum where no factor helps (arm64 with SME). */
function sumByTwoRows(g: Graph, x: Value, count: Value): Value {
  const [rows] = g.add("Expand", [g.constant(Float32Array.of(1, 1), [2, 1]), count], [{ shape: [2, x.shape[0]!] }]);
  return slice(g, matmul(g, rows!, x), 0, 0, 1, 1);
}

/** [n, numHeads * headDim] or [n, numHeads, headDim] -> [n, kvHeads, group, headDim]. */
export function inGroups(g: Graph, { numHeads, numKvHeads, headDim }: ModelConfig, q: Value, rows: Dim): Value {
  return reshape(g, q, [rows, numKvHeads, numHeads / numKvHeads, headDim]);
}

/** Scores of queries [.., q, headDim] with keys [.., k, headDim]: [.., q, k]. */
export function scoresOf(g: Graph, config: ModelConfig, queries: Value, keys: Value): Value {
  return capped(g, config, matmulTransposed(g, queries, keys, config.attentionScale));
}

/** Scores each query with the key of its own position: [n, kvHeads, group, headDim], [n, kvHeads, 1, headDim] -> [.., group, 1]. */
export function ownScores(g: Graph, config: ModelConfig, query: Value, key: Value): Value {
  // Scaled before the last dimension of 1 is added: with it the runtime takes twenty times as long.
  const scores = capped(g, config, mul(g, reduceSum(g, mul(g, query, key), 3), scalar(g, config.attentionScale)));
  return reshape(g, scores, [...scores.shape, 1]);
}

function capped(g: Graph, { attentionSoftcap }: ModelConfig, scores: Value): Value {
  return attentionSoftcap === null ? scores : softcap(g, scores, attentionSoftcap);
}
