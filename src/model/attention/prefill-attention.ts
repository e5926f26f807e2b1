// Attention of a step's prefill chunk, in parts (prefill-pieces.ts), each over blocks of keys (blockwise-attention.ts).

import type { Graph, Value } from "../../graph/graph.ts";
import { choose, concat, greater, ints, reshape, slice, split } from "../../graph/ops.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import {
  type Blocks,
  byHead,
  byToken,
  type Sums,
  sumsOverBlocks,
  type Tokens,
  withOwn,
} from "./blockwise-attention.ts";
import { type AttentionInputs, type LayerCache, PART_BOUNDS, type Rows } from "./inputs.ts";
import { PREFILL_PARTS } from "./prefill-pieces.ts";

/** As the end of a slice. */
const TO_THE_END = 2 ** 31 - 1;

/** The chunk's rows: [p, 1, numHeads * headDim]. own: their keys and values in blocks. */
export function prefillAttention(
  g: Graph,
  config: ModelConfig,
  shared: AttentionInputs,
  cache: LayerCache,
  all: Rows,
  own: Pick<Blocks, "keys" | "values">,
): Value {
  const rows = (x: Value) => slice(g, x, 0, shared.decodeCount, TO_THE_END, "p");
  const tokens = { query: byHead(g, all.query), ownScore: byHead(g, all.ownScore) };
  const sums = sumsOfParts(g, config, shared, tokens, allBlocks(g, cache, own), cache.partMasks);
  return rowsApart(g, config, withOwn(g, byToken(g, sums), rows(all.ownScore), rows(all.value)));
}

/** Rows that the short form computes: a product must not have a single one (paged-attention.ts). */
const FEW = 2;

/** The same of the last layer, behind which only rows with logits go on: what the others are does not matter, but their number. */
export function lastRowsAttention(
  g: Graph,
  config: ModelConfig,
  shared: AttentionInputs,
  cache: LayerCache,
  all: Rows,
  own: Pick<Blocks, "keys" | "values">,
): Value {
  const withLogits = slice(g, shared.partBounds, 0, -1, TO_THE_END, 1);
  return choose(g, greater(g, withLogits, ints(g, [FEW])), [["p", 1, config.numHeads * config.headDim]], {
    yes: (sub) => [prefillAttention(sub, config, shared, cache, all, own)],
    no: (sub) => {
      const last = (x: Value, axis = 0) => slice(sub, x, axis, -FEW, TO_THE_END, FEW);
      const tokens = { query: byHead(sub, last(all.query)), ownScore: byHead(sub, last(all.ownScore)) };
      const blocks = { ...allBlocks(sub, cache, own), mask: last(cache.partMasks[0]!, 3) };
      const sums = byToken(sub, sumsOverBlocks(sub, config, tokens, blocks));
      const computed = rowsApart(sub, config, withOwn(sub, sums, last(all.ownScore), last(all.value)));
      const unread = rowsApart(sub, config, slice(sub, all.query, 0, shared.decodeCount, -FEW, "unread"));
      return [concat(sub, [unread, computed], 0)];
    },
  })[0]!;
}

/** Of the chunk's past and its own, in order of positions. */
function allBlocks(g: Graph, cache: LayerCache, own: Pick<Blocks, "keys" | "values">): Pick<Blocks, "keys" | "values"> {
  return {
    keys: concat(g, [cache.pastKeys, own.keys], 0),
    values: concat(g, [cache.pastValues, own.values], 0),
  };
}

/**
 * A part is computed against the past, the parts before it and itself, so that the keys that come after it cost nothing. All
 * parts but the last are whole blocks. The last sees every block, so it comes first: its keys are taken as they are.
 * `tokens`: of all rows of the step.
 */
function sumsOfParts(
  g: Graph,
  config: ModelConfig,
  shared: AttentionInputs,
  tokens: Tokens,
  blocks: Omit<Blocks, "mask">,
  masks: readonly Value[],
): Sums {
  const bounds = split(g, shared.partBounds, 0, new Array(PART_BOUNDS).fill(1));
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
    return choose(at, greater(at, start, shared.decodeCount), shapes, {
      yes: (sub) => from(sub, part + 1, parts),
      no: (sub) => together(sub, parts),
    });
  };
  const [highest, total, values] = from(g, 0, []);
  return { highest: highest!, total: total!, values: values! };
}

/** [rows, kvHeads, group, headDim] -> [rows, 1, numHeads * headDim]. */
export function rowsApart(g: Graph, { numHeads, headDim }: ModelConfig, x: Value): Value {
  return reshape(g, x, [x.shape[0]!, 1, numHeads * headDim]);
}
