// The values of GGUF metadata. Long lists (a vocabulary, its merges) stay bytes until somebody asks for them: whoever only
// needs the shape of the model does not pay for its tokenizer.

import { CheckpointError } from "../checkpoint/checkpoint-error.ts";
import type { HeaderCursor } from "./header-cursor.ts";

export type GgufValue = number | boolean | string | GgufList;

/** Deeper than any real metadata: lists of lists do not occur. */
const MAX_DEPTH = 4;
const TEXT = 8;
const LIST = 9;

type Read = (bytes: Buffer, at: number) => number | boolean;

/** Kinds of numbers by their code in the file. */
const NUMBERS: ReadonlyMap<number, { size: number; read: Read }> = new Map([
  [0, { size: 1, read: (bytes, at) => bytes.readUInt8(at) }],
  [1, { size: 1, read: (bytes, at) => bytes.readInt8(at) }],
  [2, { size: 2, read: (bytes, at) => bytes.readUInt16LE(at) }],
  [3, { size: 2, read: (bytes, at) => bytes.readInt16LE(at) }],
  [4, { size: 4, read: (bytes, at) => bytes.readUInt32LE(at) }],
  [5, { size: 4, read: (bytes, at) => bytes.readInt32LE(at) }],
  [6, { size: 4, read: (bytes, at) => bytes.readFloatLE(at) }],
  [7, { size: 1, read: (bytes, at) => bytes.readUInt8(at) !== 0 }],
  [10, { size: 8, read: (bytes, at) => Number(bytes.readBigUInt64LE(at)) }],
  [11, { size: 8, read: (bytes, at) => Number(bytes.readBigInt64LE(at)) }],
  [12, { size: 8, read: (bytes, at) => bytes.readDoubleLE(at) }],
]);

export class GgufList {
  readonly length: number;
  readonly #kind: number;
  readonly #bytes: Buffer;

  constructor(kind: number, length: number, bytes: Buffer) {
    this.#kind = kind;
    this.length = length;
    this.#bytes = bytes;
  }

  /** null if they are not texts. */
  texts(): string[] | null {
    if (this.#kind !== TEXT) return null;
    const texts: string[] = [];
    for (let at = 0; at < this.#bytes.length; ) {
      const length = this.#bytes.readUInt32LE(at);
      texts.push(this.#bytes.toString("utf8", at + 8, at + 8 + length));
      at += 8 + length;
    }
    return texts;
  }

  /** Numbers, or true and false as 1 and 0; null if they are neither. */
  numbers(): number[] | null {
    const kind = NUMBERS.get(this.#kind);
    if (kind === undefined) return null;
    return Array.from({ length: this.length }, (_, i) => Number(kind.read(this.#bytes, i * kind.size)));
  }
}

/** Reads the value of `key`, its kind included. */
export function readValue(path: string, key: string, cursor: HeaderCursor): GgufValue {
  const kind = cursor.uint32();
  if (kind === TEXT) return cursor.text();
  if (kind === LIST) return readList(path, key, cursor, 1);
  const number = NUMBERS.get(kind);
  if (number === undefined) throw unknownKind(path, key, kind);
  const at = cursor.skip(number.size);
  return number.read(cursor.bytesFrom(at), 0);
}

function readList(path: string, key: string, cursor: HeaderCursor, depth: number): GgufList {
  if (depth > MAX_DEPTH) throw new CheckpointError(path, `the list ${key} is nested deeper than ${MAX_DEPTH} levels`);
  const kind = cursor.uint32();
  const length = cursor.uint64();
  const begin = cursor.position;
  if (kind === TEXT) {
    for (let i = 0; i < length; i++) cursor.skip(cursor.uint64());
  } else if (kind === LIST) {
    for (let i = 0; i < length; i++) readList(path, key, cursor, depth + 1);
  } else {
    const number = NUMBERS.get(kind);
    if (number === undefined) throw unknownKind(path, key, kind);
    cursor.skip(length * number.size);
  }
  return new GgufList(kind, length, cursor.bytesFrom(begin));
}

function unknownKind(path: string, key: string, kind: number): CheckpointError {
  return new CheckpointError(path, `${key} has a value of the unknown kind ${kind}`);
}
