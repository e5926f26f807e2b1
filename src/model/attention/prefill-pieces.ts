// A long chunk runs in pieces, and the attention of a piece in parts. A token's attention covers all keys up to the end
// of its part, visible or not, so long parts waste work, while short parts mean more and smaller operations. Longer
// pieces mean fewer runs and better products with the weights. So a piece has several parts.

import type { Chunk } from "../runner.ts";

/** How many parts the graph has for the prefill chunk of a run. */
export const PREFILL_PARTS = 4;

/**
 * Parts have about this many tokens or more. Measured with prompts of 512 tokens: one thread is faster with short parts; two
 * wait for each other less often in longer ones.
 */
export function shortestPart(threads: number): number {
  return threads === 1 ? 64 : 128;
}

/** Tokens that a run computes at once. */
export function longestPiece(threads: number): number {
  return PREFILL_PARTS * shortestPart(threads);
}

/** Pieces in order, cut where blocks end, of at most `longest` + 2 tokens. If only the last row is wanted, only the last has logits. */
export function piecesOf<C extends Chunk>(chunk: C, positionsPerBlock: number, longest: number): C[] {
  const { tokens, start, logits } = chunk;
  const size = Math.max(1, Math.floor(longest / positionsPerBlock)) * positionsPerBlock;
  const pieces: C[] = [];
  for (let at = 0; at < tokens.length; ) {
    const left = size - ((start + at) % positionsPerBlock);
    // A piece of one token would be a decode step, so a neighbour takes the token along.
    const room = left === 1 ? size + 1 : left;
    const end = tokens.length - at <= room + 1 ? tokens.length : at + room;
    const wanted = logits === "last" && end < tokens.length ? "none" : logits;
    pieces.push({ ...chunk, tokens: tokens.subarray(at, end), start: start + at, logits: wanted });
    at = end;
  }
  return pieces;
}

/**
 * Where the parts of a piece end, counted from the start of its first block, in which `begun` positions precede it. There
 * are at most PREFILL_PARTS parts of about the same size. All but the last end where a block ends. There is more than one
 * only if each has about `shortest` tokens or more. None has a single token: see paged-attention.ts.
 */
export function partEnds(begun: number, tokens: number, positionsPerBlock: number, shortest: number): number[] {
  const all = begun + tokens;
  const parts = Math.max(1, Math.min(PREFILL_PARTS, Math.floor(all / shortest)));
  const ends = Array.from(
    { length: parts - 1 },
    (_, i) => Math.floor((all * (i + 1)) / parts / positionsPerBlock) * positionsPerBlock,
  );
  return [...new Set(ends)].filter((end) => end >= begun + 2 && end <= all - 2).concat(all);
}
