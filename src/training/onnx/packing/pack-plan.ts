// Divides the sequences of a gradient step into micro-batches that fit in memory. Sequences of one group share the rows
// of their common beginning if they are in the same micro-batch.
import type { ModelConfig } from "../../../model/checkpoint/model-config.ts";
import type { WeightType } from "../../../model/linear/linear.ts";
import { type Family, layOut, type MicroBatch, type RowSequence, rowCount, sharedLength } from "./micro-batch.ts";

// The sizes of the pieces that a pass is cut into. They determine its memory. Nothing here needs the runtime, because
// the server computes that memory too.

/** The most rows that a stage takes at a time. */
export const SLICE_ROWS = 256;

/** Queries per attention call. Measured: fewer make the calls costly, more waste work above the diagonal. */
export const ATTENTION_CHUNK = 128;

/** Rows of logits that exist at once: a few megabytes, and enough rows for a fast product. */
export function headPiece({ vocabSize }: ModelConfig): number {
  return Math.max(64, Math.min(256, Math.floor(2 ** 20 / vocabSize)));
}

/** Positions per block that attention is summed in; null = all at once. Rounded weights need the blocks of serving. */
export function attentionBlock(weights: WeightType, served: number): number | null {
  return weights === "float32" ? null : served;
}

/** What a forward pass keeps for the backward pass: everything, or only the input of each layer. */
export type Keeping = "everything" | "layer inputs";

export interface PackLimits {
  /** Memory of a micro-batch with this many rows, whose longest sequence has `longest` tokens. */
  bytes(rows: number, longest: number, keeping: Keeping): number;
  /** Limit of one micro-batch. */
  maxBytes: number;
}

export interface PackedBatch {
  batch: MicroBatch;
  keeping: Keeping;
}

/** More rows do not make the products faster. */
const ENOUGH_ROWS = 2048;

/** Sharing a shorter beginning is not worth the bookkeeping. */
const SHORTEST_SHARED = 8;

/** `groupOf`: sequences of one group may share rows; -1 = none. Throws when a sequence does not fit even alone. */
export function planMicroBatches(
  sequences: readonly RowSequence[],
  groupOf: (index: number) => number,
  limits: PackLimits,
): PackedBatch[] {
  const batches: PackedBatch[] = [];
  const fits = (families: readonly Family[]) =>
    limits.bytes(rowCount(families), longestOf(families), "everything") <= limits.maxBytes;
  const add = (families: readonly Family[], keeping: Keeping) => {
    if (families.length > 0) batches.push({ batch: layOut(families), keeping });
  };
  let open: Family[] = [];
  for (const { shared, members } of byGroup(sequences, groupOf)) {
    let own: RowSequence[] = [];
    for (const member of members) {
      const keeping = keepingAlone(member.ids.length, limits);
      if (keeping !== "everything") {
        if (!keeping) throw new Error(`${member.ids.length} tokens do not fit the memory allowed for training`);
        add(together(0, [member]), keeping);
        continue;
      }
      const next = [...open, ...together(shared, [...own, member])];
      if (fits(next) && (next.length === 1 || rowCount(next) <= ENOUGH_ROWS)) own.push(member);
      else {
        add([...open, ...together(shared, own)], "everything");
        open = [];
        own = [member];
      }
    }
    open.push(...together(shared, own));
  }
  add(open, "everything");
  return batches;
}

/** What can be kept of a sequence of this length that runs alone; null = it does not fit at all. */
export function keepingAlone(length: number, { bytes, maxBytes }: PackLimits): Keeping | null {
  const fits = (keeping: Keeping) => bytes(length, length, keeping) <= maxBytes;
  return fits("everything") ? "everything" : fits("layer inputs") ? "layer inputs" : null;
}

/** One family if there is something to share, otherwise one per sequence. */
function together(shared: number, members: readonly RowSequence[]): Family[] {
  if (shared > 0 && members.length > 1) return [{ shared, members }];
  return members.map((member) => ({ shared: 0, members: [member] }));
}

function longestOf(families: readonly Family[]): number {
  return Math.max(...families.flatMap(({ members }) => members.map(({ ids }) => ids.length)));
}

function byGroup(sequences: readonly RowSequence[], groupOf: (index: number) => number): Family[] {
  const groups = new Map<number, RowSequence[]>();
  const families: Family[] = [];
  for (const sequence of sequences) {
    const group = groupOf(sequence.index);
    const members = groups.get(group);
    if (group < 0) families.push({ shared: 0, members: [sequence] });
    else if (members) members.push(sequence);
    else groups.set(group, [sequence]);
  }
  for (const members of groups.values()) {
    const shared = sharedLength(members);
    families.push({ shared: shared < SHORTEST_SHARED ? 0 : shared, members });
  }
  return families;
}
