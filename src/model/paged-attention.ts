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
  gather,
  greater,
  matmulTransposed,
  max,
  reduceMax,
  reduceSum,
  reshape,
  slice,
  split,
} from "../graph/ops.ts";
import {
  type Blocks,
  byHead,
  byToken,
  inGroups,
  keyBlocks,
  ownScores,
  type Sums,
  sumsOverBlocks,
  type Tokens,
  weightsOf,
  withOwn,
} from "./blockwise-attention.ts";
import type { ModelConfig } from "./checkpoint/model-config.ts";
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
   * int64 [PART_BOUNDS]. Parts of the prefill chunk count from its end. For each its first row, then for each but part 0 the
   * number of blocks up to its end. A part that is not there starts where the one after it does.
   */
  partBounds: Value;
  /** int64: where the rows of the prefill chunk stand in its blocks; see blockPlaces. */
  places: Value;
}

export const PART_BOUNDS = 2 * PREFILL_PARTS - 1;

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
  /** For each part of the prefill chunk, from its end, t rows: [blocks up to its end, 1, 1, t, blockSize]. */
  partMasks: readonly Value[];
}

/** Of all rows of a step. */
interface Rows {
  /** [n, kvHeads, group, headDim] */
  query: Value;
  /** [n, kvHeads, group, 1] */
  ownScore: Value;
  /** [n, kvHeads, 1, headDim] */
  value: Value;
}

export interface Attended {
  /** [n, 1, numHeads * headDim] */
  rows: Value;
  /** The prefill chunk's keys and values as the cache holds them; without a chunk there are no such blocks. */
  newKeys: Value;
  newValues: Value;
}

/** q: [n, numHeads, 1, headDim]; k, v: [n, kvHeads, 1, headDim]. */
export function pagedAttention(
  g: Graph,
  config: ModelConfig,
  blockSize: number,
  shared: AttentionInputs,
  cache: LayerCache,
  [q, k, v]: readonly [Value, Value, Value],
): Attended {
  const { numHeads, numKvHeads, headDim } = config;
  const query = inGroups(g, config, q, "n");
  const all = { query, ownScore: ownScores(g, config, query, k), value: v };
  const decoded = decode(g, config, shared, cache, all);
  const shapes = [
    ["n", 1, numHeads * headDim],
    ["nb", numKvHeads, blockSize, headDim],
    ["nb", numKvHeads, headDim, blockSize],
  ];
  const noBlocks = [shapes[1]!, shapes[2]!].map((shape) =>
    g.constant(new Float32Array(0), shape.with(0, 0) as number[]),
  );
  // A branch costs with every value in it, taken or not run through: decode steps find an empty one.
  const [rows, newKeys, newValues] = choose(g, shared.hasPrefill, shapes, {
    yes: (sub) => {
      const own = keyBlocks(sub, config, blockSize, shared.places, k, v);
      return [concat(sub, [decoded, prefill(sub, config, shared, cache, all, own)], 0), own.keys, own.values];
    },
    no: () => [decoded, ...noBlocks],
  });
  return { rows: rows!, newKeys: newKeys!, newValues: newValues! };
}

function decode(g: Graph, config: ModelConfig, shared: AttentionInputs, cache: LayerCache, all: Rows): Value {
  const [own, ownValue] = [all.ownScore, all.value].map((x) => slice(g, x, 0, 0, shared.decodeCount, "b"));
  // Only decode rows own blocks.
  let queries = gather(g, all.query, shared.owner);
  const alone = queries.shape[2] === 1;
  if (alone) queries = concat(g, [queries, queries], 2);

  // Scores: [blocks, kvHeads, group, blockSize] for the past, [b, kvHeads, group, 1] for the token itself.
  const past = add(g, matmulTransposed(g, queries, cache.keys, config.attentionScale), cache.mask);
  const highest = max(g, reduceMax(g, gather(g, reduceMax(g, past, 3, true), shared.table), 0), own!);

  const weights = weightsOf(g, past, gather(g, highest, shared.owner));
  const inOrder = (perBlock: Value) => reduceSum(g, gather(g, perBlock, shared.table), 0);
  const total = inOrder(reduceSum(g, weights, 3, true));
  const values = inOrder(matmulTransposed(g, weights, cache.values));
  let result = withOwn(g, { highest, total, values }, own!, ownValue!);
  if (alone) result = slice(g, result, 2, 0, 1, 1);
  return rowsApart(g, config, result, "b");
}

/** The rows after the decode rows: [p, 1, numHeads * headDim]. own: their keys and values in blocks. */
function prefill(
  g: Graph,
  config: ModelConfig,
  shared: AttentionInputs,
  cache: LayerCache,
  all: Rows,
  own: Pick<Blocks, "keys" | "values">,
): Value {
  const bounds = split(g, shared.partBounds, 0, new Array(PART_BOUNDS).fill(1));
  const rows = (x: Value) => slice(g, x, 0, shared.decodeCount, TO_THE_END, "p");
  const blocks = {
    keys: concat(g, [cache.pastKeys, own.keys], 0),
    values: concat(g, [cache.pastValues, own.values], 0),
  };
  const tokens = { query: byHead(g, all.query), ownScore: byHead(g, all.ownScore) };
  const sums = sumsOfParts(g, config, shared.decodeCount, bounds, tokens, blocks, cache.partMasks);
  return rowsApart(g, config, withOwn(g, byToken(g, sums), rows(all.ownScore), rows(all.value)), "p");
}

/** As the end of a slice. */
const TO_THE_END = 2 ** 31 - 1;

/**
 * A part is computed against the past, the parts before it and itself, so that the keys that come after it cost nothing. All
 * parts but the last are whole blocks. The last sees every block, so it comes first: its keys are taken as they are.
 * `tokens`: of all rows of the step; the chunk starts at row `first`.
 */
function sumsOfParts(
  g: Graph,
  config: ModelConfig,
  first: Value,
  bounds: readonly Value[],
  tokens: Tokens,
  blocks: Omit<Blocks, "mask">,
  masks: readonly Value[],
): Sums {
  const heads = [config.numKvHeads, config.numHeads / config.numKvHeads];
  const shapes = [1, 1, config.headDim].map((size) => [...heads, "p", size]);
  const together = (at: Graph, parts: readonly Sums[]) =>
    (["highest", "total", "values"] as const).map((name) => {
      const ofParts = parts.map((part) => part[name]);
      return ofParts.length === 1 ? ofParts[0]! : concat(at, ofParts, 2);
    });
  const from = (at: Graph, part: number, later: readonly Sums[]): readonly Value[] => {
    const start = bounds[part]!;
    const mine = (x: Value) => slice(at, x, 2, start, part === 0 ? TO_THE_END : bounds[part - 1]!, "t");
    const seen = (x: Value) => (part === 0 ? x : slice(at, x, 0, 0, bounds[PREFILL_PARTS - 1 + part]!, "nb"));
    const ofPart = sumsOverBlocks(
      at,
      config,
      { query: mine(tokens.query), ownScore: mine(tokens.ownScore) },
      { keys: seen(blocks.keys), values: seen(blocks.values), mask: masks[part]! },
    );
    const parts = [ofPart, ...later];
    if (part + 1 === PREFILL_PARTS) return together(at, parts);
    return choose(at, greater(at, start, first), shapes, {
      yes: (sub) => from(sub, part + 1, parts),
      no: (sub) => together(sub, parts),
    });
  };
  const [highest, total, values] = from(g, 0, []);
  return { highest: highest!, total: total!, values: values! };
}

/** [rows, kvHeads, group, headDim] -> [rows, 1, numHeads * headDim]. */
function rowsApart(g: Graph, { numHeads, headDim }: ModelConfig, x: Value, rows: Dim): Value {
  return reshape(g, x, [rows, 1, numHeads * headDim]);
}
