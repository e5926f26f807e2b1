// The vocabulary as a grammar sees it: the bytes of every token that may appear in a text, in plain arrays that can be
// sent to another thread. Special tokens have no bytes, since they are legal only as stop ids. The exceptions are the
// markers that a reply parser looks for.

export interface TokenVocabulary {
  /** Number of ids of the model's output layer (bits in a mask). */
  readonly size: number;
  /** Bytes of token t: bytes[offsets[t] .. offsets[t + 1]]; empty = never legal inside a text. */
  readonly bytes: Uint8Array;
  readonly offsets: Int32Array;
}

/** The part of a tokenizer that is needed here. */
export interface TokenSource {
  readonly vocabSize: number;
  bytes(id: number): Uint8Array;
  piece(id: number): string | null;
  isSpecial(id: number): boolean;
}

/** `size`: width of the model's logits (may be padded beyond the tokenizer). `markers`: special tokens legal in text. */
export function tokenVocabulary(
  tokenizer: TokenSource,
  size: number,
  markers: readonly string[] = [],
): TokenVocabulary {
  const offsets = new Int32Array(size + 1);
  const parts: Uint8Array[] = [];
  let total = 0;
  for (let id = 0; id < size; id++) {
    const bytes = id < tokenizer.vocabSize ? textBytes(tokenizer, id, markers) : null;
    if (bytes) {
      parts.push(bytes);
      total += bytes.length;
    }
    offsets[id + 1] = total;
  }
  const bytes = new Uint8Array(total);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return { size, bytes, offsets };
}

function textBytes(tokenizer: TokenSource, id: number, markers: readonly string[]): Uint8Array | null {
  const piece = tokenizer.piece(id);
  if (piece === null || (tokenizer.isSpecial(id) && !markers.includes(piece))) return null;
  return tokenizer.bytes(id);
}
