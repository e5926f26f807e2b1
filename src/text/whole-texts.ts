// The text of tokens that hold whole characters. Each token is decoded once.

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
