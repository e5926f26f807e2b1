// Token ids -> text, one token at a time, in time proportional to the token. Bytes of an unfinished character are held
// until later tokens complete it. Bytes that no token can complete appear as U+FFFD, but only once text follows them: at the
// end of a reply they are dropped. The prompt only primes the state: it decides whether a leading space belongs to the text
// and whether the first token finishes a character that the prompt began.

import { WholeTexts } from "./token-text.ts";
import type { Tokenizer } from "./tokenizer-contract.ts";
import { concatBytes, decodeUtf8, encodeUtf8, incompleteTail, noBytes } from "./utf8.ts";

export interface DetokenizerOptions {
  promptTokenIds: readonly number[];
  /** Hide special tokens (default false). */
  skipSpecialTokens?: boolean;
  /** Special tokens to show anyway: the markers that a reply parser looks for. */
  shownTokenIds?: readonly number[];
  /** false: a shown special token right after another one appears exactly as the vocabulary spells it. */
  spacesBetweenSpecialTokens?: boolean;
  /** Keep a space at the very beginning of the text, for constrained output. */
  keepLeadingSpace?: boolean;
}

/** Enough bytes of the prompt to hold the beginning of one character. */
const LONGEST_CHARACTER = 4;

export class Detokenizer {
  readonly #tokenizer: Tokenizer;
  readonly #skipSpecial: boolean;
  readonly #shown: readonly number[];
  readonly #rawAfterSpecial: boolean;
  readonly #wholeTexts: WholeTexts;
  /** The beginning of a character, 0..3 bytes. */
  #pending: Uint8Array = noBytes;
  /** U+FFFD for each invalid piece that nothing has followed yet. */
  #stray = "";
  #atStart: boolean;
  #afterSpecial = false;

  constructor(tokenizer: Tokenizer, options: DetokenizerOptions) {
    this.#tokenizer = tokenizer;
    this.#skipSpecial = options.skipSpecialTokens ?? false;
    this.#shown = options.shownTokenIds ?? [];
    this.#rawAfterSpecial = options.spacesBetweenSpecialTokens === false && !this.#skipSpecial;
    this.#wholeTexts = WholeTexts.of(tokenizer);
    const prompt = options.promptTokenIds;
    const strips = tokenizer.stripsLeadingSpace === true && options.keepLeadingSpace !== true;
    this.#atStart = strips && !prompt.some((id) => this.#isShown(id));
    let tail: Uint8Array = noBytes;
    for (let i = prompt.length - 1; i >= 0 && tail.length < LONGEST_CHARACTER; i--) {
      if (this.#isShown(prompt[i]!)) tail = concatBytes(tokenizer.bytes(prompt[i]!), tail);
    }
    this.#pending = tail.slice(tail.length - incompleteTail(tail));
  }

  /** The text this token adds; "" while it only begins a character or is hidden. */
  push(id: number): string {
    const added = this.#added(id);
    const end = endWithoutStray(added);
    const text = end === 0 ? "" : this.#stray + added.slice(0, end);
    this.#stray = end === 0 ? this.#stray + added : added.slice(end);
    return text;
  }

  /** Shows `count` bytes as U+FFFD each, in place of the tokens that stand for them. */
  pushUnreadable(count: number): void {
    this.#atStart = false;
    this.#stray += "\ufffd".repeat(count);
  }

  /** What the held bytes look like if nothing follows them; the end of a reply drops them instead. */
  incomplete(): string {
    return this.#stray + decodeUtf8(this.#pending);
  }

  #added(id: number): string {
    if (!this.#isShown(id)) return "";
    const special = this.#tokenizer.isSpecial(id);
    const raw = this.#rawAfterSpecial && special && this.#afterSpecial;
    this.#afterSpecial = special;
    const text = raw ? this.#decode(encodeUtf8(this.#tokenizer.piece(id) ?? "")) : this.#textOf(id);
    if (!this.#atStart || text === "") return text;
    this.#atStart = false;
    return text.startsWith(" ") ? text.slice(1) : text;
  }

  #isShown(id: number): boolean {
    return !(this.#skipSpecial && this.#tokenizer.isSpecial(id)) || this.#shown.includes(id);
  }

  #textOf(id: number): string {
    const whole = this.#pending.length === 0 ? this.#wholeTexts.text(id) : null;
    return whole ?? this.#decode(this.#tokenizer.bytes(id));
  }

  #decode(added: Uint8Array): string {
    const bytes = concatBytes(this.#pending, added);
    const complete = bytes.length - incompleteTail(bytes);
    this.#pending = complete === bytes.length ? noBytes : bytes.slice(complete);
    return decodeUtf8(bytes.subarray(0, complete));
  }
}

/** Where the text ends without the U+FFFD at its end. */
function endWithoutStray(text: string): number {
  let end = text.length;
  while (end > 0 && text[end - 1] === "\ufffd") end--;
  return end;
}
