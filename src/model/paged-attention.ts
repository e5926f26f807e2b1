// Attention over a block-paged cache, written so that a token's result is bit-identical however it was computed:
// alone or in a batch, as one decode step or inside a prefill chunk of any size.
//
// Keys are summed in blocks of `blockSize` positions: a block's weighted values are one matrix product of fixed size,
// and the blocks' sums are added one after the other in the order of their positions. Positions a query must not see
// get weight exactly 0 and so change nothing. Two forms compute the same sums:
//   decode   one new token for each of many sequences; past blocks are read in place from the pool.
//   prefill  many new tokens of one sequence, starting on a block boundary; past blocks come in order.
// A decode step's own key belongs to the last, partly filled block, where it comes after all older ones. Its term is
// added with a product [1, p] · [sum, v], which rounds exactly as one more position of the block's product does.
// Products never have a single row: the runtime uses a kernel with another order of summation for those.

import type { Graph, Value } from "../graph/graph.ts";
import {
  add,
  choose,
  concat,
  div,
  exp,
  gather,
  ints,
  matmul,
  matmulTransposed,
  max,
  padRows,
  reduceMax,
  reduceSum,
  reshape,
  slice,
  sub,
  transpose,
  where,
} from "../graph/ops.ts";
import type { ModelConfig } from "./model-config.ts";

/** Graph inputs shared by all layers. Rows 0 .. decodeCount-1 of a step are decode rows, the rest one prefill chunk. */
export interface AttentionInputs {
  /** int64 [1]: number of decode rows (b). */
  decodeCount: Value;
  hasDecode: Value;
  hasPrefill: Value;
  /** int64 [blocks]: row that each block of the decode list belongs to. Block 0 is the null block: always masked. */
  owner: Value;
  /** int64 [depth, b]: complete blocks of each row, oldest first; 0 = none. */
  table: Value;
  /** int64 [b]: the partly filled last block of each row; 0 when the new token starts a block. */
  tail: Value;
  /** bool [b, 1, 1, blockSize]: where in its block the new token goes. */
  newSlot: Value;
  /** float32 [b, kvHeads, group, group]: identity matrices. */
  identity: Value;
  /** int64 [1]: zero rows that fill the last block of the prefill chunk. */
  padding: Value;
}

/** Inputs of one layer. */
export interface LayerCache {
  /** [blocks, kvHeads, blockSize, headDim], read in place. */
  keys: Value;
  /** [blocks, kvHeads, headDim, blockSize]. */
  values: Value;
  /** The same for the past of the prefill chunk, in order of positions. */
  pastKeys: Value;
  pastValues: Value;
  /** Additive, 0 or -inf. [blocks, 1, 1, blockSize]. */
  mask: Value;
  /** [all blocks, 1, t, 1, blockSize]. */
  prefillMask: Value;
}

/** Rows of queries per key/value head in a decode product: at least two. */
export function decodeGroup(config: ModelConfig): number {
  return Math.max(2, config.numHeads / config.numKvHeads);
}

export function pagedAttention(
  config: ModelConfig,
  blockSize: number,
  shared: AttentionInputs,
  cache: LayerCache,
): (g: Graph, q: Value, k: Value, v: Value) => Value {
  const width = config.numHeads * config.headDim;
  type Rows = [q: Value, k: Value, v: Value];
  const decoded = (g: Graph, rows: Rows) => decode(g, config, shared, cache, ...rows);
  const prefilled = (g: Graph, rows: Rows) => prefill(g, config, blockSize, shared, cache, ...rows);
  return (g, q, k, v) => {
    const all: Rows = [q, k, v];
    const mixed = (sub: Graph) => {
      const first = all.map((x) => slice(sub, x, 0, 0, shared.decodeCount, "b")) as Rows;
      const rest = all.map((x) => slice(sub, x, 0, shared.decodeCount, Number.MAX_SAFE_INTEGER, "t")) as Rows;
      return concat(sub, [decoded(sub, first), prefilled(sub, rest)], 0);
    };
    return choose(g, shared.hasPrefill, ["n", width], {
      yes: (sub) => choose(sub, shared.hasDecode, ["n", width], { yes: mixed, no: (inner) => prefilled(inner, all) }),
      no: (sub) => decoded(sub, all),
    });
  };
}

function decode(
  g: Graph,
  config: ModelConfig,
  shared: AttentionInputs,
  cache: LayerCache,
  q: Value,
  k: Value,
  v: Value,
): Value {
  const { numHeads, numKvHeads, headDim, attentionScale } = config;
  const group = numHeads / numKvHeads;
  const newKey = reshape(g, k, ["b", numKvHeads, 1, headDim]);
  const newValue = reshape(g, v, ["b", numKvHeads, 1, headDim]);
  let query = reshape(g, q, ["b", numKvHeads, group, headDim]);
  if (group === 1) query = concat(g, [query, query], 2);

  // Scores: [blocks, kvHeads, group, blockSize] for the past, [b, kvHeads, group, 1] for the new token.
  const past = add(g, matmulTransposed(g, gather(g, query, shared.owner), cache.keys, attentionScale), cache.mask);
  const twice = matmulTransposed(g, query, concat(g, [newKey, newKey], 2), attentionScale);
  const fresh = slice(g, twice, 3, 0, 1, 1);

  const blockMax = reduceMax(g, past, 3, true);
  const olderMax = reduceMax(g, gather(g, blockMax, shared.table), 0);
  const highest = max(g, max(g, olderMax, gather(g, blockMax, shared.tail)), fresh);

  const weights = exp(g, sub(g, past, gather(g, highest, shared.owner)));
  const freshWeight = exp(g, sub(g, fresh, highest));
  const blockSums = matmulTransposed(g, weights, cache.values);
  const blockTotals = reduceSum(g, weights, 3, true);

  const tailWeights = where(g, shared.newSlot, freshWeight, gather(g, weights, shared.tail));
  const tailTotal = reduceSum(g, tailWeights, 3, true);
  const tailSum = matmul(
    g,
    concat(g, [shared.identity, freshWeight], 3),
    concat(g, [gather(g, blockSums, shared.tail), newValue], 2),
  );

  const total = add(g, reduceSum(g, gather(g, blockTotals, shared.table), 0), tailTotal);
  const summed = add(g, reduceSum(g, gather(g, blockSums, shared.table), 0), tailSum);
  let result = div(g, summed, total);
  if (group === 1) result = slice(g, result, 2, 0, 1, 1);
  return reshape(g, result, ["b", numHeads * headDim]);
}

function prefill(
  g: Graph,
  config: ModelConfig,
  blockSize: number,
  shared: AttentionInputs,
  cache: LayerCache,
  q: Value,
  k: Value,
  v: Value,
): Value {
  const blocks = (x: Value) => keyBlocks(g, config, blockSize, padRows(g, x, shared.padding, "tp"));
  const keys = concat(g, [cache.pastKeys, transpose(g, blocks(k), [0, 2, 1, 3])], 0);
  const values = concat(g, [cache.pastValues, transpose(g, blocks(v), [0, 2, 3, 1])], 0);
  return blockwise(g, config, q, keys, values, cache.prefillMask);
}

/** x: [t, kvHeads * headDim], t a multiple of the block size -> [nb, blockSize, kvHeads, headDim]. */
function keyBlocks(g: Graph, { numKvHeads, headDim }: ModelConfig, blockSize: number, x: Value): Value {
  return reshape(g, x, ["nb", blockSize, numKvHeads, headDim]);
}

/**
 * Queries [t, numHeads * headDim] over keys [nb, kvHeads, blockSize, headDim] and values [nb, kvHeads, headDim,
 * blockSize]; mask: [nb, 1, t, 1, blockSize].
 */
function blockwise(g: Graph, config: ModelConfig, q: Value, keys: Value, values: Value, mask: Value): Value {
  const { numHeads, numKvHeads, headDim, attentionScale } = config;
  const blockSize = keys.shape[2] as number;
  const group = numHeads / numKvHeads;
  // [1, kvHeads, t * group, headDim]
  const byHead = transpose(g, reshape(g, q, ["t", numKvHeads, group, headDim]), [1, 0, 2, 3]);
  const query = g.add(
    "Reshape",
    [byHead, ints(g, [1, numKvHeads, -1, headDim])],
    [{ shape: [1, numKvHeads, "tg", headDim] }],
  )[0]!;

  const scores = matmulTransposed(g, query, keys, attentionScale);
  const grid = g.add(
    "Reshape",
    [scores, ints(g, [0, numKvHeads, -1, group, blockSize])],
    [{ shape: ["nb", numKvHeads, "t", group, blockSize] }],
  )[0]!;
  const masked = add(g, grid, mask);
  const highest = reduceMax(g, reduceMax(g, masked, 4, true), 0, true);
  const weights = exp(g, sub(g, masked, highest));
  const total = reduceSum(g, reduceSum(g, weights, 4, true), 0);
  const flat = g.add(
    "Reshape",
    [weights, ints(g, [0, numKvHeads, -1, blockSize])],
    [{ shape: ["nb", numKvHeads, "tg", blockSize] }],
  )[0]!;
  const summed = reduceSum(g, matmulTransposed(g, flat, values), 0);
  const result = div(g, reshape(g, summed, [numKvHeads, "t", group, headDim]), total);
  return reshape(g, transpose(g, result, [1, 0, 2, 3]), ["t", numHeads * headDim]);
}

/**
 * The same for all keys of a sequence at once, without a cache: k, v: [s, kvHeads * headDim]; mask: [ceil(s /
 * blockSize), 1, t, 1, blockSize]; padding: int64 [1], zero rows that fill the last block. Training uses it to get
 * serving's bits.
 */
export function blockwiseAttention(
  g: Graph,
  config: ModelConfig,
  blockSize: number,
  { q, k, v, mask, padding }: { q: Value; k: Value; v: Value; mask: Value; padding: Value },
): Value {
  const blocks = (x: Value) => keyBlocks(g, config, blockSize, padRows(g, x, padding, "sp"));
  const keys = transpose(g, blocks(k), [0, 2, 1, 3]);
  const values = transpose(g, blocks(v), [0, 2, 3, 1]);
  return blockwise(g, config, q, keys, values, mask);
}
