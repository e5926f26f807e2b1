// Lays sequences out as the rows of one pass, without padding. Sequences that begin with the same tokens share the rows
// of that beginning, and the rest of each follows as a segment. A row keeps its position and attends only to its own
// sequence, so shared rows give exactly the numbers of separate ones.

/** One sequence. `index` is the caller's number for it. */
export interface RowSequence {
  index: number;
  ids: Int32Array;
  /** Positions whose predictions are read, ascending. A position may be there more than once. */
  predicting: Int32Array;
  /** The token whose log-probability is read at each of them. */
  targets: Int32Array;
}

/** Adjacent rows with consecutive positions. */
export interface Segment {
  row: number;
  count: number;
  /** Position of its first row. Earlier positions of the sequence are rows of the parent. */
  position: number;
  /** The shared beginning that it continues. A parent has no parent itself. */
  parent: Segment | null;
}

/** Where a log-probability is read: row, predicted token, sequence, and which of the sequence's reads it is. */
export interface Read {
  row: number;
  target: number;
  sequence: number;
  token: number;
}

export interface MicroBatch {
  ids: Int32Array;
  positions: Int32Array;
  segments: readonly Segment[];
  /** One sequence after the other, in the order of their tokens. */
  reads: readonly Read[];
}

/** Sequences that share their first `shared` tokens; 0 = they share nothing. */
export interface Family {
  shared: number;
  members: readonly RowSequence[];
}

export function rowCount(families: readonly Family[]): number {
  return families.reduce(
    (sum, { shared, members }) => members.reduce((total, { ids }) => total + ids.length - shared, sum + shared),
    0,
  );
}

export function layOut(families: readonly Family[]): MicroBatch {
  const rows = rowCount(families);
  const ids = new Int32Array(rows);
  const positions = new Int32Array(rows);
  const segments: Segment[] = [];
  const reads: Read[] = [];
  let next = 0;
  const append = (tokens: Int32Array, position: number, parent: Segment | null): Segment => {
    const segment = { row: next, count: tokens.length, position, parent };
    ids.set(tokens, next);
    for (let i = 0; i < tokens.length; i++) positions[next + i] = position + i;
    next += tokens.length;
    segments.push(segment);
    return segment;
  };
  for (const { shared, members } of families) {
    const parent = shared > 0 ? append(members[0]!.ids.subarray(0, shared), 0, null) : null;
    for (const { index, ids: tokens, predicting, targets } of members) {
      const own = append(tokens.subarray(shared), shared, parent);
      for (const [token, p] of predicting.entries()) {
        const row = p < shared ? parent!.row + p : own.row + p - shared;
        reads.push({ row, target: targets[token]!, sequence: index, token });
      }
    }
  }
  return { ids, positions, segments: segments.filter(({ count }) => count > 0), reads };
}

/** Length of the beginning that all sequences have in common; 0 for a single sequence. */
export function sharedLength(sequences: readonly RowSequence[]): number {
  const [first, ...others] = sequences;
  if (first === undefined || others.length === 0) return 0;
  let shared = first.ids.length;
  for (const { ids } of others) {
    let same = 0;
    while (same < shared && same < ids.length && ids[same] === first.ids[same]) same++;
    shared = same;
  }
  return shared;
}
