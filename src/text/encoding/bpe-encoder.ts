// A word → token ids, for BPE models. In byte-level models symbols are bytes. In SentencePiece-style models symbols are
// characters; unknown characters become <0xNN> tokens or the unknown token. This replaces the model half of
// @huggingface/tokenizers, which takes seconds for a megabyte without a space. The ids are the same.

import { encodeUtf8 } from "../utf8.ts";
import { type Merge, MergeTable } from "./merge-table.ts";
import { byteToChar, byteToken } from "./vocabulary.ts";

export interface BpeModelJson {
  vocab: Record<string, number>;
  /** "a b" or ["a", "b"], best first. */
  merges: (string | [string, string])[];
  /** One rank for each merge, if several may have the same; else they are ranked in order. */
  merge_ranks?: number[];
  unk_token?: string | null;
  fuse_unk?: boolean;
  byte_fallback?: boolean;
  ignore_merges?: boolean;
}

const CACHE_CAPACITY = 20_000;
const LONGEST_CACHED_WORD = 64;

export class BpeEncoder {
  readonly #vocab: ReadonlyMap<string, number>;
  readonly #merges: MergeTable;
  readonly #byteLevel: boolean;
  readonly #ignoreMerges: boolean;
  readonly #unknownId: number | null;
  readonly #fuseUnknown: boolean;
  /** byte → id of its letter (byte level) or of its <0xNN> token (byte fallback); -1 if there is none. */
  readonly #byteIds: Int32Array;
  readonly #hasEveryByte: boolean;
  readonly #byteFallback: boolean;
  readonly #cache = new Map<string, readonly number[]>();

  constructor(model: BpeModelJson, vocab: ReadonlyMap<string, number>, byteLevel: boolean) {
    this.#vocab = vocab;
    this.#byteLevel = byteLevel;
    this.#ignoreMerges = model.ignore_merges ?? false;
    this.#unknownId = model.unk_token == null ? null : (vocab.get(model.unk_token) ?? null);
    this.#fuseUnknown = model.fuse_unk ?? false;
    this.#byteIds = Int32Array.from(byteToChar, (char, byte) => vocab.get(byteLevel ? char : byteToken(byte)) ?? -1);
    this.#hasEveryByte = !this.#byteIds.includes(-1);
    this.#byteFallback = !byteLevel && (model.byte_fallback ?? false);
    this.#merges = new MergeTable(readMerges(model, vocab));
  }

  /** Appends the ids of one pre-token. */
  encodeWord(word: string, into: number[]): void {
    const cached = this.#cache.get(word);
    if (cached !== undefined) {
      for (const id of cached) into.push(id);
      return;
    }
    const from = into.length;
    this.#encode(word, into);
    if (word.length > LONGEST_CACHED_WORD) return;
    if (this.#cache.size >= CACHE_CAPACITY) this.#cache.clear();
    this.#cache.set(word, into.slice(from));
  }

  #encode(word: string, into: number[]): void {
    if (this.#ignoreMerges) {
      const whole = this.#vocab.get(this.#byteLevel ? spell(word) : word);
      if (whole !== undefined) {
        into.push(whole);
        return;
      }
    }
    const symbols = this.#byteLevel ? this.#byteSymbols(word) : this.#characterSymbols(word);
    const length = this.#merges.apply(symbols, symbols.length);
    for (let i = 0; i < length; i++) into.push(symbols[i]!);
  }

  #byteSymbols(word: string): Int32Array {
    if (!this.#hasEveryByte) return this.#characterSymbols(spell(word));
    const bytes = encodeUtf8(word);
    const symbols = new Int32Array(bytes.length);
    for (let i = 0; i < bytes.length; i++) symbols[i] = this.#byteIds[bytes[i]!]!;
    return symbols;
  }

  /**
   * As in Hugging Face's tokenizers, the unknown token is written together with the next known character (one token for
   * several unknown characters, if they are fused). Fallback bytes in between come before it. Without an unknown token,
   * unknown characters are dropped.
   */
  #characterSymbols(word: string): Int32Array {
    // A character takes at most as many symbols as it has bytes: three per UTF-16 unit.
    const symbols = new Int32Array(word.length * (this.#byteFallback ? 3 : 1));
    let length = 0;
    let unknown: number | null = null;
    for (const char of word) {
      const id = this.#vocab.get(char);
      const bytes = id === undefined && this.#byteFallback ? encodeUtf8(char) : null;
      if (bytes?.every((byte) => this.#byteIds[byte]! >= 0)) {
        for (const byte of bytes) symbols[length++] = this.#byteIds[byte]!;
        continue;
      }
      if (unknown !== null && (id !== undefined || !this.#fuseUnknown)) symbols[length++] = unknown;
      unknown = id === undefined ? this.#unknownId : null;
      if (id !== undefined) symbols[length++] = id;
    }
    if (unknown !== null) symbols[length++] = unknown;
    return symbols.subarray(0, length);
  }
}

function spell(word: string): string {
  let spelled = "";
  for (const byte of encodeUtf8(word)) spelled += byteToChar[byte];
  return spelled;
}

/** Skips merges whose parts or result are not in the vocabulary: they can never apply. */
function readMerges({ merges, merge_ranks: ranks }: BpeModelJson, vocab: ReadonlyMap<string, number>): Merge[] {
  const known: Merge[] = [];
  for (const [i, merge] of merges.entries()) {
    const [left, right] = typeof merge === "string" ? merge.split(" ", 2) : merge;
    if (left === undefined || right === undefined) continue;
    const ids = [vocab.get(left), vocab.get(right), vocab.get(left + right)] as const;
    if (ids[0] === undefined || ids[1] === undefined || ids[2] === undefined) continue;
    known.push({ left: ids[0], right: ids[1], merged: ids[2], rank: ranks?.[i] ?? i });
  }
  return known;
}
