// The printable alphabet in which byte-level BPE vocabularies spell bytes: printable Latin-1 stands for itself, the
// other 68 bytes are U+0100 onwards in byte order ("Ġ" is the space).

import { encodeUtf8 } from "../utf8.ts";

/** byte -> its character. */
export const byteToChar: readonly string[] = buildAlphabet();

const CHAR_CODE_TO_BYTE = new Map(byteToChar.map((char, byte) => [char.charCodeAt(0), byte]));

/** The bytes a byte-level piece spells; a piece with a character outside the alphabet stands for its own UTF-8. */
export function bytesOfPiece(piece: string): Uint8Array {
  const bytes = new Uint8Array(piece.length);
  for (let i = 0; i < piece.length; i++) {
    const byte = CHAR_CODE_TO_BYTE.get(piece.charCodeAt(i));
    if (byte === undefined) return encodeUtf8(piece);
    bytes[i] = byte;
  }
  return bytes;
}

/** The name of the token that stands for one byte in SentencePiece vocabularies. */
export function byteToken(byte: number): string {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
}

function buildAlphabet(): string[] {
  const alphabet: string[] = [];
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    alphabet.push(String.fromCharCode(printable ? byte : next++));
  }
  return alphabet;
}
