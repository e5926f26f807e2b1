// A long chunk runs in pieces, and a piece's attention in parts. A token's attention is computed over all keys up to the end
// of its part, seen or not, so long parts waste work; short ones pay for more and smaller operations. A piece saves runs
// and the products with weights like to be long, so a piece has several parts.

import type { Chunk } from "../runner.ts";

/** The graph has this many parts for the prefill chunk of a run. */
export const PREFILL_PARTS = 4;

/**
 * A piece is divided only into parts of about this many tokens or more. Measured with prompts of 512 tokens: one thread wants
 * short parts, two wait for each other less often in longer ones.
 */
export function shortestPart(threads: number): number {
  return threads === 1 ? 64 : 128;
}

/** Tokens that a run computes at once. */
export function longestPiece(threads: number): number {
  return PREFILL_PARTS * shortestPart(threads);
}

/** To the ends of blocks, at most `longest` tokens and two, in order. Only the last has logits where only the last row was asked for. */
export function piecesOf(chunk: Chunk, positionsPerBlock: number, longest: number): Chunk[] {
  const { tokens, start, logits } = chunk;
  const size = Math.max(1, Math.floor(longest / positionsPerBlock)) * positionsPerBlock;
  const pieces: Chunk[] = [];
  for (let at = 0; at < tokens.length; ) {
    const left = size - ((start + at) % positionsPerBlock);
    // A piece of one token would be a decode step: another takes it along.
    const room = left === 1 ? size + 1 : left;
    const end = tokens.length - at <= room + 1 ? tokens.length : at + room;
    const wanted = logits === "last" && end < tokens.length ? "none" : logits;
    pieces.push({ ...chunk, tokens: tokens.subarray(at, end), start: start + at, logits: wanted });
    at = end;
  }
  return pieces;
}

/**
 * Where the parts of a piece of this many tokens, behind `begun` others in its first block, end, counted from that block's
 * start: at most PREFILL_PARTS, of about the same size and to the ends of blocks but for the last; more than one only where each
 * has about `shortest` tokens or more. None has a single token: see paged-attention.ts.
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
