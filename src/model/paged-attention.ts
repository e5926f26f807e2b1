// Attention over a block-paged cache, written so that a token's result is bit-identical however it was computed:
// alone or in a batch, as one decode step or inside a prefill chunk of any size.
//
// Keys before a token are summed in blocks of `blockSize` positions: a block's weighted values are one matrix product of
// fixed size, and the blocks' sums are added one after the other in the order of their positions. Positions a query must
// not see get weight exactly 0 and so change nothing. The token's own key and value come last, by themselves. Two forms
// compute the same sums:
//   decode   one new token for each of many sequences; past blocks are read in place from the pool.
//   prefill  many new tokens of one sequence, starting on a block boundary; past blocks come in order.
// Products never have a single row: the runtime uses a kernel with another order of summation for those.

import type { Dim, Graph, Value } from "../graph/graph.ts";
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
  mul,
  padRows,
  reduceMax,
  reduceSum,
  reshape,
  scalar,
  slice,
  sub,
  transpose,
} from "../graph/ops.ts";
import type { ModelConfig } from "./model-config.ts";

/**
 * Graph inputs shared by all layers. Rows 0 .. decodeCount-1 of a step are decode rows, the rest one prefill chunk.
 */
export interface AttentionInputs {
  /** int64 [1]: number of decode rows (b). */
  decodeCount: Value;
  hasPrefill: Value;
  /** int64 [blocks]: row that each block of the decode list belongs to. Block 0 is the null block: always masked. */
  owner: Value;
  /** int64 [depth, b]: blocks of each row, oldest first; 0 = none. */
  table: Value;
  /** int64 [1]: zero rows that fill the last block of the prefill chunk. */
  padding: Value;
  /** Ones, [2, all blocks of the prefill]: see sumInOrder. */
  prefillOnes: Value;
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
  /** [all blocks, 1, 1, t, blockSize]. */
  prefillMask: Value;
}

export function pagedAttention(
  config: ModelConfig,
  blockSize: number,
  shared: AttentionInputs,
  cache: LayerCache,
): (g: Graph, q: Value, k: Value, v: Value) => Value {
  type Rows = [q: Value, k: Value, v: Value];
  return (g, q, k, v) => {
    const all: Rows = [q, k, v];
    const first = all.map((x) => slice(g, x, 0, 0, shared.decodeCount, "b")) as Rows;
    const decoded = decode(g, config, shared, cache, ...first);
    // A branch costs with every value in it, taken or not run through: decode steps find an empty one.
    return choose(g, shared.hasPrefill, ["n", config.numHeads * config.headDim], {
      yes: (sub) => {
        const rest = all.map((x) => slice(sub, x, 0, shared.decodeCount, Number.MAX_SAFE_INTEGER, "t")) as Rows;
        return concat(sub, [decoded, prefill(sub, config, blockSize, shared, cache, ...rest)], 0);
      },
      no: () => decoded,
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
  let query = reshape(g, q, ["b", numKvHeads, group, headDim]);
  if (group === 1) query = concat(g, [query, query], 2);

  // Scores: [blocks, kvHeads, group, blockSize] for the past, [b, kvHeads, group, 1] for the token itself.
  const past = add(g, matmulTransposed(g, gather(g, query, shared.owner), cache.keys, attentionScale), cache.mask);
  const own = ownScores(g, query, k, attentionScale);
  const highest = max(g, reduceMax(g, gather(g, reduceMax(g, past, 3, true), shared.table), 0), own);

  const weights = exp(g, sub(g, past, gather(g, highest, shared.owner)));
  const ownWeight = exp(g, sub(g, own, highest));
  const inOrder = (perBlock: Value) => reduceSum(g, gather(g, perBlock, shared.table), 0);
  const total = add(g, inOrder(reduceSum(g, weights, 3, true)), ownWeight);
  const ownValue = mul(g, ownWeight, reshape(g, v, ["b", numKvHeads, 1, headDim]));
  const summed = add(g, inOrder(matmulTransposed(g, weights, cache.values)), ownValue);
  let result = div(g, summed, total);
  if (group === 1) result = slice(g, result, 2, 0, 1, 1);
  return reshape(g, result, ["b", numHeads * headDim]);
}

/**
 * x: [blocks, ...] -> shape: the blocks added one after the other. A product with a row of ones gives the bits of the
 * runtime's own sum and takes a third of its time where rows are long. Two rows, because of what products with one do.
 */
function sumInOrder(g: Graph, x: Value, ones: Value, shape: readonly Dim[]): Value {
  const [flat] = g.add("Reshape", [x, ints(g, [0, -1])], [{ shape: [x.shape[0]!, "size"] }]);
  return reshape(g, slice(g, matmul(g, ones, flat!), 0, 0, 1, 1), shape);
}

/** Each query with the key of its own position: [n, kvHeads, group, headDim] and [n, kvHeads, 1, headDim] -> [.., 1]. */
function ownScores(g: Graph, query: Value, key: Value, scale: number): Value {
  return mul(g, reduceSum(g, mul(g, query, key), 3, true), scalar(g, scale));
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
  const own = keyBlocks(g, config, blockSize, shared.padding, k, v);
  const keys = concat(g, [cache.pastKeys, own.keys], 0);
  const values = concat(g, [cache.pastValues, own.values], 0);
  const blocks = { keys, values, mask: cache.prefillMask, ones: shared.prefillOnes };
  return blockwise(g, config, { q, ownKey: k, ownValue: v }, blocks);
}

/** Blocks of new keys and values, both [t, kvHeads * headDim] or with these dimensions apart; see Blocks. */
function keyBlocks(
  g: Graph,
  { numKvHeads, headDim }: ModelConfig,
  blockSize: number,
  padding: Value,
  k: Value,
  v: Value,
): { keys: Value; values: Value } {
  const blocks = (x: Value) => reshape(g, padRows(g, x, padding, "tp"), ["nb", blockSize, numKvHeads, headDim]);
  return { keys: transpose(g, blocks(k), [0, 2, 1, 3]), values: transpose(g, blocks(v), [0, 2, 3, 1]) };
}

/** Tokens: q [t, numHeads * headDim], key and value of the same positions [t, kvHeads * headDim]; or with heads apart. */
interface Tokens {
  q: Value;
  ownKey: Value;
  ownValue: Value;
}

interface Blocks {
  /** [nb, kvHeads, blockSize, headDim] */
  keys: Value;
  /** [nb, kvHeads, headDim, blockSize] */
  values: Value;
  /** [nb, 1, 1, t, blockSize]: hides a token's own position and what comes after it. */
  mask: Value;
  /** [2, nb] */
  ones: Value;
}

function blockwise(g: Graph, config: ModelConfig, tokens: Tokens, { keys, values, mask, ones }: Blocks): Value {
  const { numHeads, numKvHeads, headDim, attentionScale } = config;
  const blockSize = keys.shape[2] as number;
  const group = numHeads / numKvHeads;
  const apart = (x: Value, heads: number) => reshape(g, x, ["t", numKvHeads, heads, headDim]);
  // Tokens inside heads: a mask is then added to long runs of numbers.
  const byHead = (x: Value) => transpose(g, x, [1, 2, 0, 3]);
  const grouped = apart(tokens.q, group);
  const query = reshape(g, byHead(grouped), [1, numKvHeads, "gt", headDim]);
  // [kvHeads, group, t, 1]
  const own = byHead(ownScores(g, grouped, apart(tokens.ownKey, 1), attentionScale));

  const scores = matmulTransposed(g, query, keys, attentionScale);
  const [grid] = g.add(
    "Reshape",
    [scores, ints(g, [0, numKvHeads, group, -1, blockSize])],
    [{ shape: ["nb", numKvHeads, group, "t", blockSize] }],
  );
  const masked = add(g, grid!, mask);
  const highest = max(g, reduceMax(g, reduceMax(g, masked, 4, true), 0), own);
  const weights = exp(g, sub(g, masked, highest));
  const ownWeight = exp(g, sub(g, own, highest));
  const total = add(g, reduceSum(g, reduceSum(g, weights, 4, true), 0), ownWeight);
  const [flat] = g.add(
    "Reshape",
    [weights, ints(g, [0, numKvHeads, -1, blockSize])],
    [{ shape: ["nb", numKvHeads, "gt", blockSize] }],
  );
  const ofBlocks = sumInOrder(g, matmulTransposed(g, flat!, values), ones, [numKvHeads, group, "t", headDim]);
  const summed = add(g, ofBlocks, mul(g, ownWeight, byHead(apart(tokens.ownValue, 1))));
  return reshape(g, transpose(g, div(g, summed, total), [2, 0, 1, 3]), ["t", numHeads * headDim]);
}

/**
 * The same for all keys of a sequence at once, without a cache: k, v: [s, kvHeads * headDim]; mask: [nb = ceil(s /
 * blockSize), 1, 1, t, blockSize]; ones: [2, nb]; padding: int64 [1], zero rows that fill the last block. Training uses it
 * to get serving's bits.
 */
export function blockwiseAttention(
  g: Graph,
  config: ModelConfig,
  blockSize: number,
  { k, v, mask, ones, padding, ...tokens }: Tokens & { k: Value; v: Value; mask: Value; ones: Value; padding: Value },
): Value {
  return blockwise(g, config, tokens, { ...keyBlocks(g, config, blockSize, padding, k, v), mask, ones });
}
