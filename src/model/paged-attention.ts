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

import type { Dim, Graph, Value } from "../graph/graph.ts";
import {
  add,
  choose,
  concat,
  div,
  exp,
  gather,
  greater,
  matmulTransposed,
  max,
  mul,
  reduceMax,
  reduceSum,
  reshape,
  slice,
  split,
  sub,
} from "../graph/ops.ts";
import {
  type Blocks,
  blockwise,
  inGroups,
  keyBlocks,
  ownScores,
  type Tokens,
  weightsOf,
} from "./blockwise-attention.ts";
import type { ModelConfig } from "./model-config.ts";
import { PREFILL_PARTS } from "./prefill-pieces.ts";

/** Graph inputs shared by all layers. Rows 0 .. decodeCount-1 of a step are decode rows, the rest one prefill chunk. */
export interface AttentionInputs {
  /** int64 [1]: number of decode rows (b). */
  decodeCount: Value;
  /** int64 [blocks]: row that each block of the decode list belongs to. Block 0 is the null block: always masked. */
  owner: Value;
  /** int64 [depth, b]: blocks of each row, oldest first; 0 = none. */
  table: Value;
  hasPrefill: Value;
  /**
   * int64 [2 * PREFILL_PARTS]: for each part of the prefill chunk the row after its last, then for each the number of zero
   * rows that fill its last block. A part that is not there ends where the one before it does.
   */
  partBounds: Value;
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
  /** For each part of the prefill chunk, t rows: [blocks up to its end, 1, 1, t, blockSize]. */
  partMasks: readonly Value[];
}

/** Of all rows of a step. */
interface Rows extends Tokens {
  /** [n, kvHeads, 1, headDim] */
  key: Value;
}

export function pagedAttention(
  config: ModelConfig,
  blockSize: number,
  shared: AttentionInputs,
  cache: LayerCache,
): (g: Graph, q: Value, k: Value, v: Value) => Value {
  return (g, q, k, v) => {
    const query = inGroups(g, config, q, "n");
    const all = { query, ownScore: ownScores(g, config, query, k), key: k, ownValue: v };
    const decoded = decode(g, config, shared, cache, all);
    // A branch costs with every value in it, taken or not run through: decode steps find an empty one.
    return choose(g, shared.hasPrefill, ["n", 1, config.numHeads * config.headDim], {
      yes: (sub) => prefill(sub, config, blockSize, shared, cache, all, decoded),
      no: () => decoded,
    });
  };
}

function decode(g: Graph, config: ModelConfig, shared: AttentionInputs, cache: LayerCache, all: Rows): Value {
  const { attentionScale } = config;
  const [own, ownValue] = [all.ownScore, all.ownValue].map((x) => slice(g, x, 0, 0, shared.decodeCount, "b"));
  // Only decode rows own blocks.
  let queries = gather(g, all.query, shared.owner);
  const alone = queries.shape[2] === 1;
  if (alone) queries = concat(g, [queries, queries], 2);

  // Scores: [blocks, kvHeads, group, blockSize] for the past, [b, kvHeads, group, 1] for the token itself.
  const past = add(g, matmulTransposed(g, queries, cache.keys, attentionScale), cache.mask);
  const highest = max(g, reduceMax(g, gather(g, reduceMax(g, past, 3, true), shared.table), 0), own!);

  const weights = weightsOf(g, past, gather(g, highest, shared.owner));
  const ownWeight = exp(g, sub(g, own!, highest));
  const inOrder = (perBlock: Value) => reduceSum(g, gather(g, perBlock, shared.table), 0);
  const total = add(g, inOrder(reduceSum(g, weights, 3, true)), ownWeight);
  const summed = add(g, inOrder(matmulTransposed(g, weights, cache.values)), mul(g, ownWeight, ownValue!));
  let result = div(g, summed, total);
  if (alone) result = slice(g, result, 2, 0, 1, 1);
  return rowsApart(g, config, result, "b");
}

/**
 * The rows after the decode rows, in parts: a part is computed against the past, the parts before it and itself, so that
 * the keys that come after it cost nothing. All parts but the last are whole blocks.
 */
function prefill(
  g: Graph,
  config: ModelConfig,
  blockSize: number,
  shared: AttentionInputs,
  cache: LayerCache,
  all: Rows,
  decoded: Value,
): Value {
  const bounds = split(g, shared.partBounds, 0, new Array(2 * PREFILL_PARTS).fill(1));
  const from = (at: Graph, part: number, seen: Pick<Blocks, "keys" | "values">, done: readonly Value[]): Value => {
    const start = part === 0 ? shared.decodeCount : bounds[part - 1]!;
    const end = bounds[part]!;
    const rows = (x: Value) => slice(at, x, 0, start, end, "t");
    const tokens = { query: rows(all.query), ownScore: rows(all.ownScore), ownValue: rows(all.ownValue) };
    const own = keyBlocks(at, config, blockSize, bounds[PREFILL_PARTS + part]!, rows(all.key), tokens.ownValue);
    const keys = concat(at, [seen.keys, own.keys], 0);
    const values = concat(at, [seen.values, own.values], 0);
    const attended = blockwise(at, config, tokens, { keys, values, mask: cache.partMasks[part]! });
    const results = [...done, rowsApart(at, config, attended, "t")];
    if (part + 1 === PREFILL_PARTS) return concat(at, results, 0);
    return choose(at, greater(at, bounds[part + 1]!, end), ["n", 1, config.numHeads * config.headDim], {
      yes: (sub) => from(sub, part + 1, { keys, values }, results),
      no: (sub) => concat(sub, results, 0),
    });
  };
  return from(g, 0, { keys: cache.pastKeys, values: cache.pastValues }, [decoded]);
}

/** [rows, kvHeads, group, headDim] -> [rows, 1, numHeads * headDim]. */
function rowsApart(g: Graph, { numHeads, headDim }: ModelConfig, x: Value, rows: Dim): Value {
  return reshape(g, x, [rows, 1, numHeads * headDim]);
}
