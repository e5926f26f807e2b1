// The `token` and `bytes` of log-probability entries. A token is shown as the characters it completes: one that only
// begins or continues a character is "", and the one that finishes it shows the whole character. One that does not go on
// with a character begun before it is shown as it is alone. `bytes` are always the token's own raw bytes. Special tokens
// are shown.

import type { Tokenizer } from "./tokenizer-contract.ts";
import { concatBytes, decodeUtf8, incompleteTail, noBytes } from "./utf8.ts";
import { WholeTexts } from "./whole-texts.ts";

export interface TokenText {
  token: string;
  bytes: number[];
}

/** Walks along a sequence of tokens; `describe` and `text` look at alternatives for the position reached. */
export class TokenTextWalk {
  readonly #tokenizer: Tokenizer;
  readonly #asIds: boolean;
  readonly #wholeTexts: WholeTexts;
  /** The beginning of a character, 0..3 bytes. */
  #pending: Uint8Array = noBytes;

  /** `asIds`: tokens are written as `token_id:<id>`. */
  constructor(tokenizer: Tokenizer, options: { asIds?: boolean } = {}) {
    this.#tokenizer = tokenizer;
    this.#asIds = options.asIds ?? false;
    this.#wholeTexts = WholeTexts.of(tokenizer);
  }

  /** A token that could stand at this position. */
  describe(id: number): TokenText {
    return { token: this.text(id), bytes: numbers(this.#tokenizer.bytes(id)) };
  }

  /** Its `token` alone. */
  text(id: number): string {
    if (this.#asIds) return tokenIdText(id);
    if (this.#pending.length === 0) return this.#wholeTexts.text(id) ?? completeCharacters(this.#tokenizer.bytes(id));
    const bytes = this.#tokenizer.bytes(id);
    return completeCharacters(goesOn(bytes) ? concatBytes(this.#pending, bytes) : bytes);
  }

  /**
   * The token that does stand here; the walk moves on to the next position. A character that it leaves unfinished is part of
   * its text, as U+FFFD: the tokens joined are the text.
   */
  advance(id: number): TokenText {
    const described = this.describe(id);
    if (this.#pending.length === 0 && this.#wholeTexts.text(id) !== null) return described;
    const bytes = concatBytes(this.#pending, this.#tokenizer.bytes(id));
    this.#pending = bytes.slice(bytes.length - incompleteTail(bytes));
    return this.#asIds ? described : { ...described, token: completeCharacters(bytes) };
  }
}

/** Begins with a byte that cannot begin a character. */
function goesOn(bytes: Uint8Array): boolean {
  return bytes.length > 0 && (bytes[0]! & 0xc0) === 0x80;
}

function completeCharacters(bytes: Uint8Array): string {
  return decodeUtf8(bytes.subarray(0, bytes.length - incompleteTail(bytes)));
}

/** Array.from goes through an iterator, which takes several times as long. */
function numbers(bytes: Uint8Array): number[] {
  const list: number[] = [];
  for (let i = 0; i < bytes.length; i++) list.push(bytes[i]!);
  return list;
}

function tokenIdText(id: number): string {
  return `token_id:${id}`;
}
