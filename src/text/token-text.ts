// The `token` and `bytes` of log-probability entries. A token is shown as the characters it completes: one that only
// begins or continues a character is "", and the one that finishes it shows the whole character. `bytes` are always
// the token's own raw bytes. Special tokens are shown.

import type { Tokenizer } from "./tokenizer-contract.ts";
import { concatBytes, decodeUtf8, incompleteTail, noBytes } from "./utf8.ts";

export interface TokenText {
  token: string;
  bytes: number[];
}

/** Walks along a sequence of tokens; `describe` looks at alternatives for the position reached. */
export class TokenTextWalk {
  readonly #tokenizer: Tokenizer;
  readonly #asIds: boolean;
  #pending: Uint8Array = noBytes;

  /** `asIds`: tokens are written as `token_id:<id>`. */
  constructor(tokenizer: Tokenizer, options: { asIds?: boolean } = {}) {
    this.#tokenizer = tokenizer;
    this.#asIds = options.asIds ?? false;
  }

  /** A token that could stand at this position. */
  describe(id: number): TokenText {
    const bytes = this.#tokenizer.bytes(id);
    return { token: this.#asIds ? tokenIdText(id) : this.#completedBy(bytes), bytes: Array.from(bytes) };
  }

  /** The token that does stand here; the walk moves on to the next position. */
  advance(id: number): TokenText {
    const described = this.describe(id);
    const bytes = concatBytes(this.#pending, this.#tokenizer.bytes(id));
    this.#pending = bytes.slice(bytes.length - incompleteTail(bytes));
    return described;
  }

  #completedBy(added: Uint8Array): string {
    const bytes = concatBytes(this.#pending, added);
    return decodeUtf8(bytes.subarray(0, bytes.length - incompleteTail(bytes)));
  }
}

function tokenIdText(id: number): string {
  return `token_id:${id}`;
}
