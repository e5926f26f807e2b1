// Attention of a step's prefill chunk, in parts (prefill-pieces.ts), each over blocks of keys (blockwise-attention.ts).
// Returns all rows of the step. Decode rows are joined in once, before the tokens' own keys and values are added.

import type { Graph, Value } from "../../graph/graph.ts";
import { choose, concat, greater, ints, slice, split } from "../../graph/ops.ts";
import type { ModelConfig } from "../checkpoint/model-config.ts";
import {
  attentionOverBlocks,
  type Blocks,
  byHead,
  byToken,
  type Sums,
  sumsOverBlocks,
  type Tokens,
  withOwn,
} from "./blockwise-attention.ts";
import { type AttentionInputs, type LayerCache, PART_BOUNDS } from "./inputs.ts";
import { PREFILL_PARTS } from "./prefill-pieces.ts";

/** Inputs of a chunk's attention. */
export interface PrefillInputs {
  shared: AttentionInputs;
  cache: LayerCache;
  /** All rows of the step. */
  all: Tokens;
  /** The chunk's own keys and values. */
  own: Omit<Blocks, "mask">;
  /** Sums of the decode rows: [b, kvHeads, group, ..]. */
  decoded: Sums;
}

/** As the end of a slice: up to the last element. */
const TO_THE_END = 2 ** 31 - 1;

/**
 * [n, kvHeads, group, headDim]. A part is computed against the past, the parts before it and itself, so later keys cost
 * nothing. All parts but the last are whole blocks. The last part sees every block, so it comes first and uses the keys
 * as they are.
 */
export function prefillAttention(g: Graph, config: ModelConfig, inputs: PrefillInputs): Value {
  const { shared, cache, all, decoded } = inputs;
  const bounds = split(g, shared.partBounds, 0, new Array(PART_BOUNDS).fill(1));
  const blocks = blocksOf(g, inputs);
  const [queries, ownScores] = [byHead(g, all.query), byHead(g, all.ownScore)];
  const from = (at: Graph, part: number, later: readonly Sums[]): Value => {
    const start = bounds[part]!;
    const mine = (x: Value) => slice(at, x, 2, start, part === 0 ? TO_THE_END : bounds[part - 1]!, "t");
    const seen = (x: Value) => (part === 0 ? x : slice(at, x, 0, 0, bounds[PREFILL_PARTS - 1 + part]!, "nb"));
    const ofPart = sumsOverBlocks(at, config, mine(queries), mine(ownScores), {
      keys: seen(blocks.keys),
      values: seen(blocks.values),
      mask: cache.partMasks[part]!,
    });
    const parts = [ofPart, ...later];
    const together = (sub: Graph) => {
      const join = (sum: keyof Sums) => {
        const ofParts = parts.map((sums) => sums[sum]);
        return byToken(sub, concat(sub, [byHead(sub, decoded[sum]), ...ofParts], 2));
      };
      const sums = { highest: join("highest"), total: join("total"), values: join("values") };
      return withOwn(sub, sums, all.ownScore, all.value);
    };
    if (part + 1 === PREFILL_PARTS) return together(at);
    return choose(at, greater(at, start, shared.decodeCount), [all.query.shape], {
      yes: (sub) => [from(sub, part + 1, parts)],
      no: (sub) => [together(sub)],
    })[0]!;
  };
  return from(g, 0, []);
}

/** Rows that the short form computes. A product must not have a single row (paged-attention.ts). */
const FEW = 2;

/** The short form for the last layer, where only rows with logits matter. The others must be there, with any content. */
export function lastRowsAttention(g: Graph, config: ModelConfig, inputs: PrefillInputs): Value {
  const { shared, cache, all, decoded } = inputs;
  const withLogits = slice(g, shared.partBounds, 0, -1, TO_THE_END, 1);
  return choose(g, greater(g, withLogits, ints(g, [FEW])), [all.query.shape], {
    yes: (sub) => [prefillAttention(sub, config, inputs)],
    no: (sub) => {
      const first = (x: Value) => slice(sub, x, 0, 0, shared.decodeCount, "b");
      const last = (x: Value, axis = 0) => slice(sub, x, axis, -FEW, TO_THE_END, FEW);
      const computed = attentionOverBlocks(
        sub,
        config,
        { query: last(all.query), ownScore: last(all.ownScore), value: last(all.value) },
        { ...blocksOf(sub, inputs), mask: last(cache.partMasks[0]!, 3) },
      );
      const unread = slice(sub, all.query, 0, shared.decodeCount, -FEW, "unread");
      const ofDecodeRows = withOwn(sub, decoded, first(all.ownScore), first(all.value));
      return [concat(sub, [ofDecodeRows, unread, computed], 0)];
    },
  })[0]!;
}

/** Blocks of the chunk's past and its own, in order of position. */
function blocksOf(g: Graph, { cache, own }: PrefillInputs): Omit<Blocks, "mask"> {
  return {
    keys: concat(g, [cache.pastKeys, own.keys], 0),
    values: concat(g, [cache.pastValues, own.values], 0),
  };
}
