// The text of tokens that are made of whole characters, decoded once for all who show them.

import type { Tokenizer } from "./tokenizer-contract.ts";
import { decodeUtf8, incompleteTail } from "./utf8.ts";

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

  /** null: the token ends within a character, or there is no such token. Holds where no character is left unfinished. */
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
