// Attention over a block-paged cache, written so that a token's result is bit-identical however it was computed:
// alone or in a batch, as one decode step or inside a prefill chunk of any size.
//
// Keys before a token are summed in blocks of `blockSize` positions: a block's weighted values are one matrix product of
// fixed size, and the blocks' sums are added one after the other in the order of their positions. Positions a query must
// not see get weight exactly 0 and so change nothing. The token's own key and value come last, by themselves. Two forms
// compute the same sums:
//   decode   one new token for each of many sequences; past blocks are read in place from the pool.
//   prefill  many new tokens of one sequence, starting on a block boundary; past blocks come in order
//            (blockwise-attention.ts).
// Products never have a single row: the runtime uses a kernel with another order of summation for those.

import type { Graph, Value } from "../graph/graph.ts";
import {
  add,
  choose,
  concat,
  div,
  exp,
  gather,
  matmulTransposed,
  max,
  mul,
  reduceMax,
  reduceSum,
  reshape,
  slice,
  sub,
} from "../graph/ops.ts";
import { blockwise, keyBlocks, ownScores, weightsOf } from "./blockwise-attention.ts";
import type { ModelConfig } from "./model-config.ts";

/** Graph inputs shared by all layers. Rows 0 .. decodeCount-1 of a step are decode rows, the rest one prefill chunk. */
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
  /** Ones, [2, all blocks of the prefill]: see sumInOrder in blockwise-attention.ts. */
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

  const weights = weightsOf(g, past, gather(g, highest, shared.owner));
  const ownWeight = exp(g, sub(g, own, highest));
  const inOrder = (perBlock: Value) => reduceSum(g, gather(g, perBlock, shared.table), 0);
  const total = add(g, inOrder(reduceSum(g, weights, 3, true)), ownWeight);
  const ownValue = mul(g, ownWeight, reshape(g, v, ["b", numKvHeads, 1, headDim]));
  const summed = add(g, inOrder(matmulTransposed(g, weights, cache.values)), ownValue);
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
  const own = keyBlocks(g, config, blockSize, shared.padding, k, v);
  const keys = concat(g, [cache.pastKeys, own.keys], 0);
  const values = concat(g, [cache.pastValues, own.values], 0);
  const blocks = { keys, values, mask: cache.prefillMask, ones: shared.prefillOnes };
  return blockwise(g, config, { q, ownKey: k, ownValue: v }, blocks);
}
