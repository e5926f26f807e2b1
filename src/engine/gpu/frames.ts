// Frames between the server and the process that owns a GPU: u32 bytes of the header, u32 bytes of the tail, the header
// (JSON), the tail (raw little-endian arrays, which the header names). Arrays never pass through JSON. Sizes and places
// are checked before anything is allocated. trainer/flywheel_gpu/channel.py is the other side.

import { isJsonObject, type JsonObject } from "../../json/json.ts";

/** Of the process, whose connection then ends: a frame that means nothing could be followed by anything. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
  constructor(problem: string) {
    super(`the GPU process broke the protocol: ${problem}`);
  }
}

const MAX_HEADER = 16 * 2 ** 20;
const MAX_TAIL = 256 * 2 ** 20;
const PREFIX = 8;
/** Arrays begin at multiples of this in the tail. */
const ALIGNMENT = 8;

const ARRAY_TYPES = { i32: Int32Array, u32: Uint32Array, f32: Float32Array, u8: Uint8Array } as const;
type ArrayType = keyof typeof ARRAY_TYPES;
type ArrayOf<T extends ArrayType> = InstanceType<(typeof ARRAY_TYPES)[T]>;
type AnyArray = ArrayOf<ArrayType>;

/** Values, and their shape if it is not just their number. */
export type ArraysToSend = Readonly<Record<string, AnyArray | { values: AnyArray; shape: readonly number[] }>>;

/** `header` has a `type`. Throws RangeError for a frame that is too large. */
export function encodeFrame(header: object, arrays: ArraysToSend = {}): Buffer[] {
  const entries: [string, string, readonly number[], number][] = [];
  const parts: Buffer[] = [];
  let offset = 0;
  for (const [name, given] of Object.entries(arrays)) {
    const { values, shape } = ArrayBuffer.isView(given) ? { values: given, shape: [given.length] } : given;
    entries.push([name, typeOf(values), shape, offset]);
    const padding = -values.byteLength & (ALIGNMENT - 1);
    parts.push(Buffer.from(values.buffer, values.byteOffset, values.byteLength), Buffer.alloc(padding));
    offset += values.byteLength + padding;
  }
  const json = Buffer.from(JSON.stringify(entries.length === 0 ? header : { ...header, arrays: entries }));
  if (json.length > MAX_HEADER || offset > MAX_TAIL) {
    throw new RangeError(`a frame of ${json.length} and ${offset} bytes is too large`);
  }
  const prefix = Buffer.alloc(PREFIX);
  prefix.writeUInt32LE(json.length, 0);
  prefix.writeUInt32LE(offset, 4);
  return [prefix, json, ...parts];
}

function typeOf(values: AnyArray): ArrayType {
  return (Object.keys(ARRAY_TYPES) as ArrayType[]).find((type) => values instanceof ARRAY_TYPES[type])!;
}

/** A frame as it came. Asking for a field or an array that it does not have throws ProtocolError. */
export class Frame {
  readonly type: string;
  readonly header: JsonObject;
  readonly #arrays: ReadonlyMap<string, AnyArray>;

  constructor(header: JsonObject, tail: Uint8Array<ArrayBuffer>) {
    if (typeof header.type !== "string") throw new ProtocolError("a frame without a type");
    this.type = header.type;
    this.header = header;
    this.#arrays = readArrays(this.type, header.arrays ?? [], tail);
  }

  /** `length`: how many values it must have; otherwise any number. */
  array<T extends ArrayType>(name: string, type: T, length?: number): ArrayOf<T> {
    const values = this.#arrays.get(name);
    if (!(values instanceof ARRAY_TYPES[type])) throw this.problem(`no ${type} array "${name}"`);
    if (length !== undefined && values.length !== length) {
      throw this.problem(`${values.length} values of "${name}", expected ${length}`);
    }
    return values as ArrayOf<T>;
  }

  /** A finite number of the header, or of an object in it. */
  number(name: string, from: JsonObject = this.header): number {
    const value = from[name];
    if (typeof value !== "number") throw this.problem(`no number "${name}"`);
    return value;
  }

  text(name: string, from: JsonObject = this.header): string {
    const value = from[name];
    if (typeof value !== "string") throw this.problem(`no text "${name}"`);
    return value;
  }

  object(name: string): JsonObject {
    const value = this.header[name];
    if (!isJsonObject(value)) throw this.problem(`no object "${name}"`);
    return value;
  }

  problem(what: string): ProtocolError {
    return new ProtocolError(`"${this.type}": ${what}`);
  }
}

function readArrays(type: string, list: unknown, tail: Uint8Array<ArrayBuffer>): Map<string, AnyArray> {
  const wrong = () => new ProtocolError(`"${type}": its arrays do not fit its tail`);
  if (!Array.isArray(list) || (list.length === 0 && tail.length > 0)) throw wrong();
  const arrays = new Map<string, AnyArray>();
  let free = 0;
  for (const entry of list) {
    if (!Array.isArray(entry)) throw wrong();
    const [name, kind, shape, offset] = entry as [unknown, unknown, unknown, unknown];
    if (typeof name !== "string" || arrays.has(name) || !isArrayType(kind) || !isShape(shape)) throw wrong();
    if (typeof offset !== "number" || offset % ALIGNMENT !== 0 || offset < free) throw wrong();
    const length = shape.reduce((product, size) => product * size, 1);
    free = offset + length * ARRAY_TYPES[kind].BYTES_PER_ELEMENT;
    if (!(free <= tail.length)) throw wrong();
    arrays.set(name, new ARRAY_TYPES[kind](tail.buffer, offset, length));
  }
  return arrays;
}

function isArrayType(kind: unknown): kind is ArrayType {
  return typeof kind === "string" && Object.hasOwn(ARRAY_TYPES, kind);
}

function isShape(shape: unknown): shape is number[] {
  return Array.isArray(shape) && shape.every((size) => Number.isInteger(size) && size >= 0);
}

/** Puts frames together from the pieces in which a socket delivers them. */
export class FrameReader {
  #pieces: Buffer[] = [];
  /** Bytes in `pieces`. */
  #bytes = 0;
  /** Bytes of the frame that is coming; null = its prefix is not complete. */
  #coming: { header: number; tail: number } | null = null;

  /** The frames that this piece completes. Throws ProtocolError; nothing may be pushed after that. */
  *push(piece: Buffer): Generator<Frame> {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    while (true) {
      if (this.#coming === null) {
        if (this.#bytes < PREFIX) return;
        const prefix = this.#take(PREFIX);
        this.#coming = { header: prefix.readUInt32LE(0), tail: prefix.readUInt32LE(4) };
        const { header, tail } = this.#coming;
        if (header < 2 || header > MAX_HEADER || tail > MAX_TAIL) {
          throw new ProtocolError(`a frame of ${header} and ${tail} bytes`);
        }
      }
      const { header, tail } = this.#coming;
      if (this.#bytes < header + tail) return;
      this.#coming = null;
      const json = parseHeader(this.#take(header));
      yield new Frame(json, new Uint8Array(this.#take(tail)));
    }
  }

  /** Takes bytes that are there. */
  #take(count: number): Buffer {
    const whole = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces, this.#bytes);
    this.#pieces = whole.length === count ? [] : [whole.subarray(count)];
    this.#bytes -= count;
    return whole.subarray(0, count);
  }
}

function parseHeader(json: Buffer): JsonObject {
  let header: unknown;
  try {
    header = JSON.parse(json.toString());
  } catch {
    throw new ProtocolError("a header that is not JSON");
  }
  if (!isJsonObject(header)) throw new ProtocolError("a header that is not an object");
  return header;
}
