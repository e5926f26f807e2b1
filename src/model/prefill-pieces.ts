// A long chunk runs in pieces. A token's attention is computed over all keys of its piece, seen or not, so long pieces waste
// work; short ones pay for more runs.

import type { Chunk } from "../engine/runner.ts";

/**
 * Measured with prompts of 512 and 1,024 tokens: one thread is 7 % faster with pieces of 128 than of 256, two threads are 5 %
 * faster with 256, because they wait for each other less often; 64 and 512 gain nothing.
 */
export function pieceTokens(threads: number): number {
  return threads === 1 ? 128 : 256;
}

/** Whole blocks, at most `longest` tokens and one, in order. Only the last has logits where only the last row was asked for. */
export function piecesOf(chunk: Chunk, blockSize: number, longest: number): Chunk[] {
  const { tokens, start, logits } = chunk;
  const size = Math.max(1, Math.floor(longest / blockSize)) * blockSize;
  const pieces: Chunk[] = [];
  for (let at = 0; at < tokens.length; ) {
    // A piece of one token would be a decode step: the last piece takes it along.
    const end = tokens.length - at <= size + 1 ? tokens.length : at + size;
    const wanted = logits === "last" && end < tokens.length ? "none" : logits;
    pieces.push({ ...chunk, tokens: tokens.subarray(at, end), start: start + at, logits: wanted });
    at = end;
  }
  return pieces;
}
