// UTF-8 for text that arrives token by token. A token can end inside a character, so these functions separate complete
// characters from bytes that later tokens may complete. Bytes that can never become a character decode to U+FFFD.

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();

export const noBytes: Uint8Array = new Uint8Array(0);

export function encodeUtf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** A byte-order mark is kept: it is part of the text. */
export function decodeUtf8(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** How many bytes at the end (0 to 3) start a character that more bytes could complete. */
export function incompleteTail(bytes: Uint8Array): number {
  const end = bytes.length;
  for (let back = 1; back <= 3 && back <= end; back++) {
    const byte = bytes[end - back]!;
    if ((byte & 0xc0) === 0x80) continue;
    if (characterLength(byte) <= back) return 0;
    return back === 1 || mayFollow(byte, bytes[end - back + 1]!) ? back : 0;
  }
  return 0;
}

export function concatBytes(first: Uint8Array, second: Uint8Array): Uint8Array {
  if (first.length === 0) return second;
  const joined = new Uint8Array(first.length + second.length);
  joined.set(first);
  joined.set(second, first.length);
  return joined;
}

/** Length in bytes of the character that starts with `lead`; 1 if `lead` cannot start one. */
function characterLength(lead: number): number {
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  return 1;
}

/** The second byte is narrower than 80..BF after four lead bytes (overlong forms, surrogates, beyond U+10FFFF). */
function mayFollow(lead: number, second: number): boolean {
  if (lead === 0xe0) return second >= 0xa0;
  if (lead === 0xed) return second <= 0x9f;
  if (lead === 0xf0) return second >= 0x90;
  if (lead === 0xf4) return second <= 0x8f;
  return true;
}
