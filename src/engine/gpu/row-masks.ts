// What rows that wait for the server at every position are told: tokens that the grammar forces, the legal tokens, the
// forced end of a thought, the ends of bad words. Entries collect until they are sent as one frame. Grammars return to
// the same places, so most masks are in the process already: it keeps them in numbered slots, and this side decides
// which slot holds what.

import { hash } from "node:crypto";
import type { Finish } from "../contract.ts";
import { mustEnd } from "../next-tokens.ts";
import { errorFinish } from "../request-table.ts";
import type { ArraysToSend } from "./frames.ts";
import type { Row } from "./row-table.ts";

// The rows that wait, and what each must be told next.

export class MaskedRows {
  readonly #masks: RowMasks;
  readonly #onEnd: (row: Row, finish: Finish) => void;
  readonly #onLate: () => void;
  /** Rows whose constraints still work on their next mask. */
  readonly #held = new Set<Row>();
  #asksHeld = false;

  /** `onEnd`: called for a row that gets no further. `onLate`: called after rows that were held have been told. */
  constructor(masks: RowMasks, onEnd: (row: Row, finish: Finish) => void, onLate: () => void) {
    this.#masks = masks;
    this.#onEnd = onEnd;
    this.#onLate = onLate;
  }

  /** How many rows this side keeps waiting. */
  get held(): number {
    return this.#held.size;
  }

  /** Tells a row what it may sample next, or holds it until its constraint knows. */
  tell(row: Row): void {
    this.#held.delete(row);
    try {
      const { constraint, sampler, forced } = row;
      if (constraint?.ready() === false) {
        this.#hold(row);
        return;
      }
      const legal = constraint?.mask() ?? null;
      if (legal !== null && mustEnd(row, legal)) {
        this.#onEnd(row, { reason: "stop", stopReason: null });
        return;
      }
      const position = sampler!.outputTokens.length;
      const isTold = this.#masks.add({ row: row.number, position, forced, legal, ...sampler!.nextEdits });
      if (isTold) row.forced = [];
      else this.#hold(row);
    } catch (error) {
      this.#onEnd(row, errorFinish(error));
    }
  }

  /** The row has used what it was told. */
  used(row: Row): void {
    this.#masks.release(row.number);
  }

  /** The row has ended. */
  forget(row: Row): void {
    this.#held.delete(row);
    this.#masks.release(row.number);
  }

  /** The arrays of a `masks` frame with what rows were told since the last call; null without any. */
  take(): ArraysToSend | null {
    return this.#masks.take();
  }

  checkIdle(): void {
    if (this.#masks.pinned > 0 || this.#held.size > 0) throw new Error("ended rows wait, or hold mask slots");
  }

  /** Frames and commands get in before it is asked again. */
  #hold(row: Row): void {
    this.#held.add(row);
    if (this.#asksHeld) return;
    this.#asksHeld = true;
    setImmediate(() => {
      this.#asksHeld = false;
      if (this.#held.size === 0) return;
      for (const held of [...this.#held]) this.tell(held);
      this.#onLate();
    });
  }
}

// The entries of a `masks` frame.

export interface MaskEntry {
  row: number;
  /** Output position that the entry is about: behind the forced tokens. */
  position: number;
  /** Tokens that come before it without sampling. */
  forced: readonly number[];
  /** Bitset of the legal tokens; null = all. Read at once. */
  legal: Int32Array | null;
  /** null = none. */
  forcedId: number | null;
  wordEnds: readonly number[];
}

/** Masks of at most so many legal tokens travel as a list. */
const LONGEST_LIST = 512;
const EVERYTHING = -1;
const NONE = -1;

export class RowMasks {
  readonly #words: number;
  /** Digest -> slot, least recently used first. */
  readonly #slots = new Map<string, number>();
  readonly #free: number[];
  /** Rows whose pending entry names the slot. */
  readonly #pins: Uint32Array;
  /** Row -> the slot that it pins. */
  readonly #pinned = new Map<number, number>();
  #batch = newBatch();

  constructor(vocabSize: number, slots: number) {
    this.#words = Math.ceil(vocabSize / 32);
    this.#free = Array.from({ length: slots }, (_, i) => slots - 1 - i);
    this.#pins = new Uint32Array(slots);
  }

  /** Slots that pending entries name, for tests. */
  get pinned(): number {
    return this.#pinned.size;
  }

  /** False while every slot is named by a pending entry: try again after a row was released. */
  add({ row, position, forced, legal, forcedId, wordEnds }: MaskEntry): boolean {
    const slot = legal === null ? EVERYTHING : this.#slotOf(legal);
    if (slot === null) return false;
    this.release(row);
    if (slot !== EVERYTHING) {
      this.#pins[slot]!++;
      this.#pinned.set(row, slot);
    }
    const batch = this.#batch;
    batch.rows.push(row);
    batch.positions.push(position);
    batch.forcedCounts.push(forced.length);
    batch.forcedIds.push(...forced);
    batch.legal.push(slot);
    batch.only.push(forcedId ?? NONE);
    batch.bannedCounts.push(wordEnds.length);
    batch.bannedIds.push(...wordEnds);
    return true;
  }

  /** The row has used its entry, or has ended. */
  release(row: number): void {
    const slot = this.#pinned.get(row);
    if (slot === undefined) return;
    this.#pinned.delete(row);
    this.#pins[slot]!--;
  }

  /** The arrays of a `masks` frame with the entries since the last call; null without any. */
  take(): ArraysToSend | null {
    const { bits, bitSlots, ...lists } = this.#batch;
    if (lists.rows.length === 0) return null;
    this.#batch = newBatch();
    const packed = new Int32Array(bits.length * this.#words);
    for (const [i, mask] of bits.entries()) packed.set(mask, i * this.#words);
    return {
      rows: Uint32Array.from(lists.rows),
      positions: Uint32Array.from(lists.positions),
      forcedCounts: Uint32Array.from(lists.forcedCounts),
      forcedIds: Int32Array.from(lists.forcedIds),
      legal: Int32Array.from(lists.legal),
      only: Int32Array.from(lists.only),
      bannedCounts: Uint32Array.from(lists.bannedCounts),
      bannedIds: Int32Array.from(lists.bannedIds),
      bitSlots: Uint32Array.from(bitSlots),
      bits: { values: packed, shape: [bits.length, this.#words] },
      listSlots: Uint32Array.from(lists.listSlots),
      listCounts: Uint32Array.from(lists.listCounts),
      listIds: Int32Array.from(lists.listIds),
    };
  }

  /** The slot that holds this mask, which becomes part of the next frame if none did; null when none is free. */
  #slotOf(mask: Int32Array): number | null {
    const words = mask.subarray(0, this.#words);
    const digest = hash("sha256", new Uint8Array(words.buffer, words.byteOffset, words.byteLength), "binary");
    const known = this.#slots.get(digest);
    const slot = known ?? this.#free.pop() ?? this.#evict();
    if (slot === null) return null;
    this.#slots.delete(digest);
    this.#slots.set(digest, slot);
    if (known === undefined) this.#define(slot, words);
    return slot;
  }

  #define(slot: number, words: Int32Array): void {
    const batch = this.#batch;
    const ids = idsOf(words);
    if (ids === null) {
      batch.bitSlots.push(slot);
      batch.bits.push(words.slice());
    } else {
      batch.listSlots.push(slot);
      batch.listCounts.push(ids.length);
      batch.listIds.push(...ids);
    }
  }

  /** A slot that no pending entry names, the least recently used first. */
  #evict(): number | null {
    for (const [digest, slot] of this.#slots) {
      if (this.#pins[slot] !== 0) continue;
      this.#slots.delete(digest);
      return slot;
    }
    return null;
  }
}

function newBatch() {
  const numbers = (): number[] => [];
  return {
    ...{ rows: numbers(), positions: numbers(), forcedCounts: numbers(), forcedIds: numbers() },
    ...{ legal: numbers(), only: numbers(), bannedCounts: numbers(), bannedIds: numbers() },
    ...{ bitSlots: numbers(), listSlots: numbers(), listCounts: numbers(), listIds: numbers() },
    bits: [] as Int32Array[],
  };
}

/** Ids of a bitset, ascending; null when there are more than a list should hold. */
function idsOf(words: Int32Array): number[] | null {
  const ids: number[] = [];
  for (let at = 0; at < words.length; at++) {
    for (let rest = words[at]!; rest !== 0; rest &= rest - 1) {
      if (ids.length === LONGEST_LIST) return null;
      ids.push(at * 32 + 31 - Math.clz32(rest & -rest));
    }
  }
  return ids;
}
