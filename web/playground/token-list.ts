// The tokens of a reply, kept in columns: numbers in typed arrays and every word once. A token with five alternatives takes
// some eighty bytes, in memory and in the browser's database; as the wire had it, it would take two thousand.
import { type Alternative, idOf, type Token, TokenReader, type WireEntry } from "./tokens.ts";

/** As it is stored. Places refer to words by their number; the alternatives of a place end where `topEnds` says. */
export interface PackedTokens {
  wordIds: Int32Array;
  /** Where the bytes of each word end. */
  wordEnds: Int32Array;
  wordBytes: Uint8Array;
  words: Int32Array;
  logprobs: Float64Array;
  topEnds: Int32Array;
  topWords: Int32Array;
  topLogprobs: Float64Array;
}

interface Word {
  id: number;
  bytes: Uint8Array;
}

export class TokenList {
  readonly #vocabulary: Word[] = [];
  readonly #numbers = new Map<number, number[]>();
  readonly #words: number[] = [];
  readonly #logprobs: number[] = [];
  readonly #topEnds: number[] = [];
  readonly #topWords: number[] = [];
  readonly #topLogprobs: number[] = [];
  #packed: PackedTokens | null = null;
  readonly #listed: Token[] = [];
  readonly #reader = new TokenReader();

  /** Throws if the parts do not fit together. */
  static from(packed: PackedTokens): TokenList {
    const list = new TokenList();
    const { words, logprobs, topEnds, topWords, topLogprobs, wordIds, wordEnds, wordBytes } = packed;
    const fits =
      words.length === logprobs.length &&
      words.length === topEnds.length &&
      topWords.length === topLogprobs.length &&
      (topEnds.at(-1) ?? 0) === topWords.length &&
      wordIds.length === wordEnds.length &&
      (wordEnds.at(-1) ?? 0) === wordBytes.length;
    const known = (number: number) => number >= 0 && number < wordIds.length;
    if (!fits || !words.every(known) || !topWords.every(known)) throw new Error("The tokens do not fit together.");
    list.#packed = packed;
    return list;
  }

  static of(tokens: readonly Token[]): TokenList {
    const list = new TokenList();
    for (const token of tokens) list.#put(token, token.top);
    return list;
  }

  get length(): number {
    return this.#packed?.words.length ?? this.#words.length;
  }

  add({ token, logprob, bytes, top_logprobs = [] }: WireEntry): void {
    const top = top_logprobs.map((one) => ({ id: idOf(one.token), logprob: one.logprob, bytes: one.bytes ?? [] }));
    top.sort((a, b) => b.logprob - a.logprob);
    this.#put({ id: idOf(token), logprob, bytes: bytes ?? [] }, top);
  }

  /** The first `length` of them, as a list of its own. */
  slice(length: number): TokenList {
    return TokenList.of(this.list().slice(0, length));
  }

  /** All of them, each made once. The array grows with the list. */
  list(): readonly Token[] {
    for (let at = this.#listed.length; at < this.length; at++) this.#listed.push(this.#reader.read(this.entry(at)));
    return this.#listed;
  }

  /** As the wire had it. */
  entry(at: number): WireEntry {
    const { words, logprobs, topEnds, topWords, topLogprobs } = this.#packed ?? this.#columns();
    const top: NonNullable<WireEntry["top_logprobs"]> = [];
    for (let i = at === 0 ? 0 : topEnds[at - 1]!; i < topEnds[at]!; i++) {
      top.push(this.#wire(topWords[i]!, topLogprobs[i]!));
    }
    return { ...this.#wire(words[at]!, logprobs[at]!), top_logprobs: top };
  }

  pack(): PackedTokens {
    if (this.#packed !== null) return this.#packed;
    const lengths = this.#vocabulary.map(({ bytes }) => bytes.length);
    let end = 0;
    const wordEnds = Int32Array.from(lengths, (length) => {
      end += length;
      return end;
    });
    const wordBytes = new Uint8Array(end);
    this.#vocabulary.forEach(({ bytes }, i) => {
      wordBytes.set(bytes, wordEnds[i]! - bytes.length);
    });
    return {
      wordIds: Int32Array.from(this.#vocabulary, ({ id }) => id),
      wordEnds,
      wordBytes,
      words: Int32Array.from(this.#words),
      logprobs: Float64Array.from(this.#logprobs),
      topEnds: Int32Array.from(this.#topEnds),
      topWords: Int32Array.from(this.#topWords),
      topLogprobs: Float64Array.from(this.#topLogprobs),
    };
  }

  #columns() {
    return {
      words: this.#words,
      logprobs: this.#logprobs,
      topEnds: this.#topEnds,
      topWords: this.#topWords,
      topLogprobs: this.#topLogprobs,
    };
  }

  #put(own: Omit<Alternative, "text">, top: readonly Omit<Alternative, "text">[]): void {
    if (this.#packed !== null) throw new Error("A stored list does not grow.");
    this.#words.push(this.#number(own.id, own.bytes));
    this.#logprobs.push(own.logprob);
    for (const { id, bytes, logprob } of top) {
      this.#topWords.push(this.#number(id, bytes));
      this.#topLogprobs.push(logprob);
    }
    this.#topEnds.push(this.#topWords.length);
  }

  /** An id may have other bytes at another place: the first word of a text may lack its space. */
  #number(id: number, bytes: Iterable<number>): number {
    const wanted = Uint8Array.from(bytes);
    const known = this.#numbers.get(id) ?? [];
    const isSame = (number: number) => {
      const { bytes: have } = this.#vocabulary[number]!;
      return have.length === wanted.length && have.every((byte, i) => byte === wanted[i]);
    };
    const found = known.find(isSame);
    if (found !== undefined) return found;
    const number = this.#vocabulary.push({ id, bytes: wanted }) - 1;
    this.#numbers.set(id, [...known, number]);
    return number;
  }

  #wire(number: number, logprob: number): Omit<WireEntry, "top_logprobs"> {
    if (this.#packed === null) {
      const { id, bytes } = this.#vocabulary[number]!;
      return { token: `token_id:${id}`, logprob, bytes: [...bytes] };
    }
    const { wordIds, wordEnds, wordBytes } = this.#packed;
    const bytes = wordBytes.subarray(number === 0 ? 0 : wordEnds[number - 1]!, wordEnds[number]!);
    return { token: `token_id:${wordIds[number]}`, logprob, bytes: [...bytes] };
  }
}
