// The tokenizer interface that the rest of the service uses. HfTokenizer implements it, and the tests have a byte
// tokenizer.

export interface EncodeOptions {
  addSpecialTokens?: boolean;
  maxTokens?: number;
  /** The text has marks of LiteralText: control tokens that they break are text. */
  hasMarks?: boolean;
}

/** A token of its own, beside those of the model's vocabulary. */
export interface AddedTokenSpelling {
  content: string;
  special: boolean;
}

export interface DecodeOptions {
  skipSpecialTokens?: boolean;
  spacesBetweenSpecialTokens?: boolean;
}

export interface Tokenizer {
  /** Number of ids, special and added tokens included (largest id + 1). */
  readonly vocabSize: number;
  readonly eosTokenId: number | null;
  /**
   * Recognises special and added tokens written in the text. With `maxTokens`, ids after the first `maxTokens` + 1 may be
   * wrong or missing.
   */
  encode(text: string, options?: EncodeOptions): number[];
  /** The same in short steps, so that a long text need not block its thread. */
  encodeSteps(text: string, options?: EncodeOptions): Generator<undefined, number[]>;
  decode(ids: readonly number[], options?: DecodeOptions): string;
  /** The same in short steps. */
  decodeSteps(ids: readonly number[], options?: DecodeOptions): Generator<undefined, string>;
  /** The raw vocabulary piece, as tokenizer.json spells it ("Ġthe"); null for an id without a token. */
  piece(id: number): string | null;
  /** The exact bytes this token stands for inside a text; specials: the UTF-8 of their text. */
  bytes(id: number): Uint8Array;
  /** Id of the piece or added token with exactly this spelling, or null. */
  idOf(piece: string): number | null;
  /** Id of a token that stands for exactly these bytes, or null. If there are several, not the one spelled as a byte. */
  idOfBytes(bytes: ArrayLike<number>): number | null;
  /** True for tokens that skip_special_tokens hides. */
  isSpecial(id: number): boolean;
  /** "byte_level": pieces map to bytes; "sentencepiece": "▁" pieces with <0xNN> byte fallback. */
  readonly kind: "byte_level" | "sentencepiece";
  /** Absent when the tokenizer cannot tell spelt tokens from others. */
  readonly addedTokens?: readonly AddedTokenSpelling[];
  /** True when decoding drops one space at the very beginning of a text (absent = false). */
  readonly stripsLeadingSpace?: boolean;
}
