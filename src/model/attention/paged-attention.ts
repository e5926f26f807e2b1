// Attention over a paged cache. A token's result is bit-identical however it was computed: alone or in a batch, as one
// decode step or inside a prefill chunk of any size.
//
// Keys before a token are summed in blocks of `positionsPerBlock` positions. A block's weighted values are one matrix
// product of fixed size, and the sums of the blocks are added one after the other in order of position. Positions that a
// query must not see get weight exactly 0 and so change nothing. The token's own key and value are added last, separately.
// Two forms compute the same sums:
//   decode   one new token for each of many sequences. Past blocks are read in place from the pool.
//   prefill  many new tokens of one sequence. Past blocks come in order. If the tokens start inside a block, its earlier
//            positions come as rows (prefill-attention.ts, over blockwise-attention.ts).
// Products never have a single row, because the runtime's kernel for single rows sums in another order.

import type { Dim, Graph, Value } from "../../graph/graph.ts";
import {
  add,
  choose,
  concat,
  gather,
  matmulTransposed,
  max,
  reduceMax,
  reduceSum,
  reshape,
  slice,
} from "../../graph/ops.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import {
  type Blocks,
  inGroups,
  keyBlocks,
  ownScores,
  type Sums,
  scoresOf,
  type Tokens,
  weightsOf,
  withOwn,
} from "./blockwise-attention.ts";
import type { AttentionInputs, LayerCache } from "./inputs.ts";
import { lastRowsAttention, prefillAttention } from "./prefill-attention.ts";

export interface Attended {
  /** [n, 1, numHeads * headDim] */
  rows: Value;
  /** The prefill chunk's keys and values in the cache's layout; no blocks without a chunk. */
  newKeys: Value;
  newValues: Value;
}

/** q: [n, numHeads, 1, headDim]; k, v: [n, kvHeads, 1, headDim]. `last`: the last layer, where rows without logits are not read. */
export function pagedAttention(
  g: Graph,
  config: ModelConfig,
  shared: AttentionInputs,
  cache: LayerCache,
  [q, k, v]: readonly [Value, Value, Value],
  last: boolean,
): Attended {
  const { numHeads, headDim } = config;
  const positionsPerBlock = cache.keys.shape[2] as number;
  const query = inGroups(g, config, q, "n");
  const all = { query, ownScore: ownScores(g, config, query, k), value: v };
  const decoded = sumsOfDecodeRows(g, config, shared, cache, all);
  const blockShapes = shapesOfBlocks(config, positionsPerBlock);
  const noBlocks = blockShapes.map((shape) => g.constant(new Float32Array(0), shape.with(0, 0) as number[]));
  // Every value in a branch costs time even if the branch is not taken, so decode steps get a short one.
  const [rows, newKeys, newValues] = choose(g, shared.hasPrefill, [query.shape, ...blockShapes], {
    yes: (sub) => {
      const own = ownBlocks(sub, config, positionsPerBlock, shared, cache.index, [k, v]);
      const attend = last ? lastRowsAttention : prefillAttention;
      return [attend(sub, config, { shared, cache, all, own, decoded }), own.keys, own.values];
    },
    no: (sub) => [withOwn(sub, decoded, all.ownScore, all.value), ...noBlocks],
  });
  // Outside the branch: as a branch's result, a reshape would be a copy.
  return { rows: reshape(g, rows!, ["n", 1, numHeads * headDim]), newKeys: newKeys!, newValues: newValues! };
}

/** Shapes of key blocks and of value blocks: see Blocks. */
function shapesOfBlocks({ numKvHeads, headDim }: ModelConfig, positionsPerBlock: number): Dim[][] {
  return [
    ["nb", numKvHeads, positionsPerBlock, headDim],
    ["nb", numKvHeads, headDim, positionsPerBlock],
  ];
}

/** The blocks of the prefill chunk. The positions that its first block already has come before all rows. */
function ownBlocks(
  g: Graph,
  config: ModelConfig,
  positionsPerBlock: number,
  { begun, hasBegun, places }: AttentionInputs,
  layer: number,
  [k, v]: readonly [Value, Value],
): Omit<Blocks, "mask"> {
  const blocks = (at: Graph, keys: Value, values: Value) => {
    const made = keyBlocks(at, config, positionsPerBlock, places, keys, values);
    return [made.keys, made.values];
  };
  // In a branch, because joining takes 1 to 2 % of a prompt's time and few chunks start inside a block.
  const [keys, values] = choose(g, hasBegun, shapesOfBlocks(config, positionsPerBlock), {
    yes: (sub) => {
      const before = (index: number) => gather(sub, begun, sub.constant(BigInt64Array.of(BigInt(index)), []));
      return blocks(sub, concat(sub, [before(2 * layer), k], 0), concat(sub, [before(2 * layer + 1), v], 0));
    },
    no: (sub) => blocks(sub, k, v),
  });
  return { keys: keys!, values: values! };
}

/** [b, kvHeads, group, ..] */
function sumsOfDecodeRows(
  g: Graph,
  config: ModelConfig,
  shared: AttentionInputs,
  cache: LayerCache,
  all: Tokens,
): Sums {
  const own = slice(g, all.ownScore, 0, 0, shared.decodeCount, "b");
  // Only decode rows own blocks.
  let queries = gather(g, all.query, shared.owner);
  const alone = queries.shape[2] === 1;
  if (alone) queries = concat(g, [queries, queries], 2);

  // Scores: [blocks, kvHeads, group, positionsPerBlock] for the past, [b, kvHeads, group, 1] for the token itself.
  const past = add(g, scoresOf(g, config, queries, cache.keys), cache.mask);
  const highest = max(g, reduceMax(g, gather(g, reduceMax(g, past, 3, true), shared.table), 0), own);

  const weights = weightsOf(g, past, gather(g, highest, shared.owner));
  const inOrder = (perBlock: Value) => reduceSum(g, gather(g, perBlock, shared.table), 0);
  const total = inOrder(reduceSum(g, weights, 3, true));
  const values = inOrder(matmulTransposed(g, weights, cache.values));
  const first = (x: Value) => (alone ? slice(g, x, 2, 0, 1, 1) : x);
  return { highest: first(highest), total: first(total), values: first(values) };
}
