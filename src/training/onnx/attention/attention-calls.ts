// Divides the attention of a micro-batch into calls of the attention graphs. A call takes some queries of one segment
// and exactly the keys that they may see. So nothing is computed outside a sliding window and little above the
// diagonal, and memory grows with the length, not with its square.

import type { Tensor } from "onnxruntime-node";
import { floats, hasKernels, int64s } from "../../../graph/session.ts";
import { blockPlaces } from "../../../model/attention/blockwise-attention.ts";
import { BLOCKS_PER_GROUP } from "../../../model/attention/kernel-attention.ts";
import type { Segment } from "../packing/micro-batch.ts";
import { ATTENTION_CHUNK } from "../packing/pack-plan.ts";
import type { Rows } from "../packing/row-slices.ts";

export interface AttentionCall {
  queries: Rows;
  /** Keys in the order of their positions: rows of the parent segment, then of this one. */
  keys: readonly Rows[];
  /** mask, and for serving's order of summation also window, or block_mask and places (attention-graphs.ts). */
  feeds: Readonly<Record<string, Tensor>>;
}

/** `window`: sliding window of the layer; null = none. `positionsPerBlock`: of serving, to sum in its order. */
export function attentionCalls(
  segments: readonly Segment[],
  window: number | null,
  positionsPerBlock: number | null,
): AttentionCall[] {
  const masks = new Map<string, AttentionCall["feeds"]>();
  return segments.flatMap((segment) => {
    const calls: AttentionCall[] = [];
    for (let done = 0, count = 0; done < segment.count; done += count) {
      count = chunkOf(segment.count - done);
      const position = segment.position + done;
      const oldest = window === null ? 0 : Math.max(0, position - window + 1);
      const first = oldest - (oldest % unitOf(positionsPerBlock));
      const key = `${count} ${position - first}`;
      if (!masks.has(key)) masks.set(key, maskFeeds(count, position - first, window, positionsPerBlock));
      const keys = keyRows(segment, first, position + count);
      calls.push({ queries: { row: segment.row + done, count }, keys, feeds: masks.get(key)! });
    }
    return calls;
  });
}

/** Serving sums what begins at multiples of this many positions together. */
function unitOf(positionsPerBlock: number | null): number {
  if (positionsPerBlock === null) return 1;
  return hasKernels ? BLOCKS_PER_GROUP * positionsPerBlock : positionsPerBlock;
}

/**
 * How many of the remaining queries the next call takes. It never leaves a single one: with one query head per key
 * head, that would be a product with a single row (see model/attention/paged-attention.ts).
 */
function chunkOf(left: number): number {
  return left === ATTENTION_CHUNK + 1 ? ATTENTION_CHUNK - 1 : Math.min(ATTENTION_CHUNK, left);
}

/** Rows of positions from .. to - 1 of the sequence that ends with this segment. */
function keyRows({ row, position, parent }: Segment, from: number, to: number): Rows[] {
  if (parent === null || from >= position) return [{ row: row + from - position, count: to - from }];
  return [
    { row: parent.row + from, count: position - from },
    { row, count: to - position },
  ];
}

/** `count` queries; the first has `before` keys before it. Every query also has a key at its own position. */
function maskFeeds(
  count: number,
  before: number,
  window: number | null,
  positionsPerBlock: number | null,
): AttentionCall["feeds"] {
  const size = before + count;
  const hidden = (query: number, key: number) => key > query || (window !== null && query - key >= window);
  const mask = new Float32Array(count * size);
  for (let i = 0; i < count; i++) {
    for (let key = 0; key < size; key++) if (hidden(before + i, key)) mask[i * size + key] = Number.NEGATIVE_INFINITY;
  }
  if (positionsPerBlock === null) return { mask: floats(mask, [count, size]) };
  if (hasKernels) {
    return { mask: floats(mask, [count, size]), window: int64s(BigInt64Array.of(BigInt(window ?? 0)), [1]) };
  }

  const blocks = Math.ceil(size / positionsPerBlock);
  const byBlock = new Float32Array(blocks * count * positionsPerBlock).fill(Number.NEGATIVE_INFINITY);
  for (let key = 0; key < size; key++) {
    const at = Math.floor(key / positionsPerBlock) * count * positionsPerBlock + (key % positionsPerBlock);
    // a query's own key is not one of the blocks'
    for (let i = 0; i < count; i++) if (key !== before + i) byBlock[at + i * positionsPerBlock] = mask[i * size + key]!;
  }
  return {
    mask: floats(mask, [count, size]),
    block_mask: floats(byBlock, [blocks, 1, 1, count, positionsPerBlock]),
    places: int64s(blockPlaces(0, size, positionsPerBlock), [blocks * positionsPerBlock]),
  };
}
