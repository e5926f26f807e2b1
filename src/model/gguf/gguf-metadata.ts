// Typed access to the metadata of a GGUF file. Errors name the file, the key, what was expected and what was found.
import { CheckpointError, type CheckpointFile } from "../checkpoint/checkpoint-file.ts";

// Reads the header of a GGUF file from its beginning, number by number and text by text. Counts and lengths come from the
// file, so each is compared with the bytes that are left before anything is read for it.

/** Larger than any real header: the vocabularies and merges of 2026 take up to 30 MB. */
export const MAX_HEADER_BYTES = 256 * 2 ** 20;
const FIRST_READ_BYTES = 2 ** 20;

export class HeaderCursor {
  position = 0;
  readonly #file: CheckpointFile;
  /** The file from its beginning, as far as it was read. */
  #bytes: Buffer = Buffer.alloc(0);

  constructor(file: CheckpointFile) {
    this.#file = file;
  }

  uint32(): number {
    const at = this.skip(4);
    return this.#bytes.readUInt32LE(at);
  }

  /** Larger numbers than 2^53 are not exact, but larger than whatever they are compared with. */
  uint64(): number {
    const at = this.skip(8);
    return this.#bytes.readUInt32LE(at) + this.#bytes.readUInt32LE(at + 4) * 2 ** 32;
  }

  /** A length and as many bytes of UTF-8. */
  text(): string {
    const length = this.uint64();
    const at = this.skip(length);
    return this.#bytes.toString("utf8", at, at + length);
  }

  /** Goes on by `count` bytes, which are then read. Gives the position of the first. */
  skip(count: number): number {
    const limit = Math.min(this.#file.bytes, MAX_HEADER_BYTES);
    if (count > limit - this.position) {
      const problem =
        this.#file.bytes <= MAX_HEADER_BYTES
          ? `ends inside its header, at byte ${this.#file.bytes} (truncated: an incomplete download?)`
          : `claims a header of more than ${MAX_HEADER_BYTES} bytes`;
      throw new CheckpointError(this.#file.path, problem);
    }
    const at = this.position;
    this.position += count;
    if (this.position > this.#bytes.length) this.#readUpTo(this.position, limit);
    return at;
  }

  /** The bytes of the header from `begin` to the current position. */
  bytesFrom(begin: number): Buffer {
    return this.#bytes.subarray(begin, this.position);
  }

  #readUpTo(end: number, limit: number): void {
    const grown = Buffer.alloc(Math.min(limit, Math.max(end, 2 * this.#bytes.length, FIRST_READ_BYTES)));
    this.#bytes.copy(grown);
    this.#file.readAt(this.#bytes.length, grown.subarray(this.#bytes.length));
    this.#bytes = grown;
  }
}

// The values of GGUF metadata. Long lists (a vocabulary, its merges) stay bytes until somebody asks for them: whoever only
// needs the shape of the model does not pay for its tokenizer.

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

class GgufList {
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

export class GgufMetadata {
  readonly path: string;
  readonly #values: ReadonlyMap<string, GgufValue>;

  constructor(path: string, values: ReadonlyMap<string, GgufValue>) {
    this.path = path;
    this.#values = values;
  }

  has(key: string): boolean {
    return this.#values.has(key);
  }

  keys(): string[] {
    return [...this.#values.keys()];
  }

  text(key: string, fallback?: string): string {
    return this.#read(key, fallback, "a text", (value) => (typeof value === "string" ? value : null));
  }

  flag(key: string, fallback: boolean): boolean {
    return this.#read(key, fallback, "true or false", (value) => (typeof value === "boolean" ? value : null));
  }

  number(key: string, fallback?: number): number {
    return this.#read(key, fallback, "a finite number", (value) => (Number.isFinite(value) ? (value as number) : null));
  }

  /** A whole number of at least 1. Some files repeat it for every layer; then all must be the same. */
  count(key: string, fallback?: number): number {
    return this.#read(key, fallback, "one positive integer", (value) => {
      const all = value instanceof GgufList ? (value.numbers() ?? []) : [value];
      const [first] = all;
      const isCount = Number.isSafeInteger(first) && (first as number) >= 1;
      return isCount && all.every((one) => one === first) ? (first as number) : null;
    });
  }

  texts(key: string): string[] {
    return this.#read(key, undefined, "a list of texts", (value) => (value instanceof GgufList ? value.texts() : null));
  }

  numbers(key: string): number[] {
    const numbers = (value: GgufValue) => (value instanceof GgufList ? value.numbers() : null);
    return this.#read(key, undefined, "a list of numbers", numbers);
  }

  #read<T>(key: string, fallback: T | undefined, expected: string, read: (value: GgufValue) => T | null): T {
    const value = this.#values.get(key);
    if (value === undefined) {
      if (fallback !== undefined) return fallback;
      throw new CheckpointError(this.path, `its metadata has no ${key} (expected ${expected})`);
    }
    const result = read(value);
    if (result !== null) return result;
    const found = value instanceof GgufList ? `a list of ${value.length}` : JSON.stringify(value).slice(0, 80);
    throw new CheckpointError(this.path, `${key} in its metadata must be ${expected}, found ${found}`);
  }
}
