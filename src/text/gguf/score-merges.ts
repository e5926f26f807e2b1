// The merges of a SentencePiece vocabulary. A GGUF file has a score for every piece instead of a list of merges: of all
// neighbours that make a piece together, the pair with the best piece is merged first, the leftmost on ties.

export interface RankedMerges {
  merges: [string, string][];
  /** One for each merge, ascending. Merges into pieces of the same score share a rank. */
  ranks: number[];
}

export function scoreMerges(pieces: readonly string[], scores: readonly number[]): RankedMerges {
  const known = new Set(pieces);
  const order = pieces.map((_, id) => id).sort((a, b) => scores[b]! - scores[a]! || a - b);
  const merges: [string, string][] = [];
  const ranks: number[] = [];
  let rank = -1;
  let scoreOfRank = Number.NaN;
  for (const id of order) {
    if (scores[id] !== scoreOfRank) {
      rank++;
      scoreOfRank = scores[id]!;
    }
    const piece = pieces[id]!;
    for (const at of boundaries(piece)) {
      const [left, right] = [piece.slice(0, at), piece.slice(at)];
      if (!known.has(left) || !known.has(right)) continue;
      merges.push([left, right]);
      ranks.push(rank);
    }
  }
  return { merges, ranks };
}

/** The places between the characters of a piece. */
function boundaries(piece: string): number[] {
  const places: number[] = [];
  for (let at = 1; at < piece.length; at++) {
    const isInside = /[\udc00-\udfff]/.test(piece[at]!) && /[\ud800-\udbff]/.test(piece[at - 1]!);
    if (!isInside) places.push(at);
  }
  return places;
}
