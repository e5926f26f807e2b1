// The `token` and `bytes` of log-probability entries. A token that ends inside a character has the text ""; the token that
// completes the character has the text of all of them. A byte that no later token completes therefore appears in no text.
// `bytes` are always the token's own. Special tokens are shown.
import type { Tokenizer } from "./tokenizer-contract.ts";
import { concatBytes, decodeUtf8, incompleteTail } from "./utf8.ts";

// The text of tokens that hold whole characters. Each token is decoded once.

export class WholeTexts {
  readonly #tokenizer: Tokenizer;
  readonly #texts: (string | null | undefined)[] = [];

  private constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
  }

  /** One per tokenizer. */
  static of(tokenizer: Tokenizer): WholeTexts {
    let texts = known.get(tokenizer);
    if (texts === undefined) {
      texts = new WholeTexts(tokenizer);
      known.set(tokenizer, texts);
    }
    return texts;
  }

  /** null if the token ends inside a character or does not exist. Valid only after complete characters. */
  text(id: number): string | null {
    let text = this.#texts[id];
    if (text === undefined) {
      if (id >= this.#tokenizer.vocabSize) return null;
      const bytes = this.#tokenizer.bytes(id);
      text = incompleteTail(bytes) === 0 ? decodeUtf8(bytes) : null;
      this.#texts[id] = text;
    }
    return text;
  }
}

const known = new WeakMap<Tokenizer, WholeTexts>();

export interface TokenText {
  token: string;
  bytes: number[];
}

/** The longest character has four bytes, so at most three tokens before one can begin it. */
const MOST_UNFINISHED = 4;
const REPLACEMENT = "\ufffd";

/** Walks along a sequence of tokens; `describe` and `text` look at alternatives for the position reached. */
export class TokenTextWalk {
  readonly #tokenizer: Tokenizer;
  readonly #asIds: boolean;
  readonly #wholeTexts: WholeTexts;
  /** Bytes of the last tokens, if they had no text yet; the newest last. */
  readonly #unfinished: Uint8Array[] = [];

  /** `asIds`: tokens are written as `token_id:<id>`. */
  constructor(tokenizer: Tokenizer, options: { asIds?: boolean } = {}) {
    this.#tokenizer = tokenizer;
    this.#asIds = options.asIds ?? false;
    this.#wholeTexts = WholeTexts.of(tokenizer);
  }

  /** Describes a token that could come at this position. */
  describe(id: number): TokenText {
    return { token: this.text(id), bytes: numbers(this.#tokenizer.bytes(id)) };
  }

  /** Its `token` alone. */
  text(id: number): string {
    if (this.#asIds) return tokenIdText(id);
    const alone = this.#wholeTexts.text(id);
    const whole = alone === null || alone.endsWith(REPLACEMENT) ? null : alone;
    if (this.#unfinished.length === 0) return whole ?? "";
    const bytes = this.#tokenizer.bytes(id);
    if (whole !== null && !goesOn(bytes)) return whole;
    return this.#completed(bytes, whole);
  }

  /** Describes the token that does come here, and moves on to the next position. */
  advance(id: number): TokenText {
    const described = this.describe(id);
    if (this.#asIds) return described;
    if (described.token !== "") {
      this.#unfinished.length = 0;
    } else if (described.bytes.length > 0) {
      this.#unfinished.push(this.#tokenizer.bytes(id));
      if (this.#unfinished.length > MOST_UNFINISHED) this.#unfinished.shift();
    }
    return described;
  }

  /** The text of these bytes after as few unfinished tokens as complete it; `alone` if none do. */
  #completed(bytes: Uint8Array, alone: string | null): string {
    let joined = bytes;
    let found = alone;
    for (let i = this.#unfinished.length - 1; i >= 0; i--) {
      joined = concatBytes(this.#unfinished[i]!, joined);
      const text = decodeUtf8(joined);
      if (!text.includes(REPLACEMENT)) return text;
      if (!text.endsWith(REPLACEMENT)) found ??= text;
    }
    return found ?? "";
  }
}

/** Begins with a byte that cannot begin a character. */
function goesOn(bytes: Uint8Array): boolean {
  return bytes.length > 0 && (bytes[0]! & 0xc0) === 0x80;
}

/** Several times as fast as Array.from, which goes through an iterator. */
function numbers(bytes: Uint8Array): number[] {
  const list: number[] = [];
  for (let i = 0; i < bytes.length; i++) list.push(bytes[i]!);
  return list;
}

function tokenIdText(id: number): string {
  return `token_id:${id}`;
}
