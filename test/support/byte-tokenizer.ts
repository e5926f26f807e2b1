// A tokenizer of 256 ids: id = byte value, except 0-2, which are <pad> <s> </s>, exactly like the fixture checkpoints.
// The bytes 0-2 themselves have no token and are dropped when encoding.

import { byteToChar } from "../../src/text/encoding/vocabulary.ts";
import { withoutMarks } from "../../src/text/literal-text.ts";
import type { EncodeOptions, Tokenizer } from "../../src/text/tokenizer-contract.ts";

const SPECIALS = ["<pad>", "<s>", "</s>"];

export class ByteTokenizer implements Tokenizer {
  readonly vocabSize = 256;
  readonly eosTokenId = 2;
  readonly kind = "byte_level";
  readonly addedTokens = SPECIALS.map((content) => ({ content, special: true }));

  /** `addSpecialTokens` changes nothing: like the fixtures, this tokenizer adds none. */
  encode(text: string, { hasMarks = false }: EncodeOptions = {}): number[] {
    const ids: number[] = [];
    for (const part of text.split(/(<pad>|<s>|<\/s>)/)) {
      const special = SPECIALS.indexOf(part);
      if (special >= 0) ids.push(special);
      else for (const byte of Buffer.from(hasMarks ? withoutMarks(part) : part, "utf8")) if (byte > 2) ids.push(byte);
    }
    return ids;
  }

  *encodeSteps(text: string, options: EncodeOptions = {}): Generator<undefined, number[]> {
    yield;
    return this.encode(text, options);
  }

  decode(ids: readonly number[], options: { skipSpecialTokens?: boolean } = {}): string {
    const shown = options.skipSpecialTokens ? ids.filter((id) => !this.isSpecial(id)) : ids;
    return Buffer.concat(shown.map((id) => this.bytes(id))).toString("utf8");
  }

  *decodeSteps(ids: readonly number[], options: { skipSpecialTokens?: boolean } = {}): Generator<undefined, string> {
    yield;
    return this.decode(ids, options);
  }

  piece(id: number): string | null {
    return SPECIALS[id] ?? byteToChar[id] ?? null;
  }

  bytes(id: number): Uint8Array {
    if (this.isSpecial(id)) return Buffer.from(SPECIALS[id]!, "utf8");
    return id < this.vocabSize ? Uint8Array.of(id) : new Uint8Array(0);
  }

  idOf(piece: string): number | null {
    const special = SPECIALS.indexOf(piece);
    if (special >= 0) return special;
    const id = byteToChar.indexOf(piece);
    return id > 2 ? id : null;
  }

  idOfBytes(bytes: ArrayLike<number>): number | null {
    if (bytes.length === 1) return bytes[0]! > 2 ? bytes[0]! : null;
    const special = SPECIALS.indexOf(Buffer.from(Uint8Array.from(bytes)).toString("utf8"));
    return special < 0 ? null : special;
  }

  isSpecial(id: number): boolean {
    return id >= 0 && id <= 2;
  }
}
