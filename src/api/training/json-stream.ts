// Reads a large body item by item while it arrives.
import { BadValueError, ValueReader } from "./json-value.ts";

// Errors in a body's JSON, found before its fields are read.

export class JsonSyntaxError extends Error {
  /** Byte offset in the body. */
  readonly offset: number;

  constructor(message: string, offset: number, cause?: unknown) {
    super(message, { cause });
    this.name = "JsonSyntaxError";
    this.offset = offset;
  }
}

/** The JSON may be valid, but it is larger than allowed. */
export class JsonSizeError extends Error {
  /** Path of the value that is too large. */
  readonly path: readonly (string | number)[];

  constructor(message: string, path: readonly (string | number)[], cause?: unknown) {
    super(message, { cause });
    this.name = "JsonSizeError";
    this.path = path;
  }
}

// Reads a large JSON object from a stream of bytes without holding all of it. Yields the elements of the arrays named
// in `streamed` one by one, then the enclosing object with its other fields. This file reads the structure around the
// values; json-value.ts reads the values.

/**
 * Names of the arrays to stream. Their elements come out whole (null), or as objects that are streamed in turn. A field
 * of such a name that is an object instead stays a field, and its own arrays are streamed.
 */
export interface Streamed {
  readonly [array: string]: Streamed | null;
}

export interface JsonItem {
  /** Names and indices; empty for the outer object, which is the last item. */
  path: readonly (string | number)[];
  /** Streamed arrays are empty here. */
  value: unknown;
  /** The JSON that the value was read from; null if it was read in parts. */
  text: string | null;
}

/** Per body. With the default size limit this is one item per 256 bytes. */
const MAX_ITEMS = 1_000_000;

/** Fields of one object that is read in parts. */
const MAX_NAMES = 1_000;

/** Errors cut longer field names. */
const MAX_NAME_LENGTH = 100;

const [QUOTE, COMMA, COLON] = [0x22, 0x2c, 0x3a];
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d];

/** Position in the innermost open object. */
type Place = "start" | "key" | "colon" | "value" | "element" | "after-element" | "after-value" | "end";

/** An object being read in parts. */
interface OpenObject {
  streamed: Streamed;
  fields: Record<string, unknown>;
  /** Number of names in `fields`, each time that it is there. */
  names: number;
  /** Number of values in `fields`. */
  values: number;
  key: string;
  /** Index of the next element. */
  index: number;
  /** Whether it is a field of the object around it, not an element. */
  isField: boolean;
}

export class JsonItems {
  readonly #streamed: Streamed;
  /** Outermost first. */
  readonly #open: OpenObject[] = [];
  #place: Place = "start";
  /** Whether a key or element must follow, after a comma. */
  #expectMore = false;
  #value: ValueReader | null = null;
  #count = 0;
  #offset = 0;

  constructor(streamed: Streamed) {
    this.#streamed = streamed;
  }

  /** Items completed by this chunk. */
  push(chunk: Uint8Array): JsonItem[] {
    const items: JsonItem[] = [];
    let from = 0;
    let i = 0;
    try {
      for (; i < chunk.length; i++) {
        const byte = chunk[i]!;
        if (this.#value) {
          if (this.#value.goesOn(byte)) continue;
          const { closed } = this.#value;
          this.#value.add(chunk.slice(from, closed ? i + 1 : i));
          this.#finishValue(this.#value, items);
          if (closed) continue;
        }
        if (isSpace(byte)) continue;
        this.#structure(byte, this.#offset + i, items);
        from = i;
      }
    } catch (error) {
      throw error instanceof BadValueError ? this.#located(error, this.#offset + i) : error;
    }
    this.#value?.add(chunk.slice(from));
    this.#offset += chunk.length;
    return items;
  }

  /** Throws unless the object is complete. */
  finish(): void {
    if (this.#place !== "end") throw new JsonSyntaxError("the JSON ends too early", this.#offset);
  }

  /** Takes a byte outside a value, or the first byte of one. */
  #structure(byte: number, at: number, items: JsonItem[]): void {
    const inner = this.#open.at(-1);
    if (!inner) {
      if (this.#place === "end") throw new JsonSyntaxError("nothing may follow the object", at);
      if (byte !== OPEN_BRACE) throw new JsonSyntaxError("expected an object", at);
      this.#enter(this.#streamed, true);
      return;
    }
    switch (this.#place) {
      case "key":
        if (byte === CLOSE_BRACE && !this.#expectMore) this.#leave(items);
        else if (byte !== QUOTE) throw new JsonSyntaxError("expected a field name", at);
        else this.#value = new ValueReader(byte, inner.values);
        return;
      case "colon":
        if (byte !== COLON) throw new JsonSyntaxError("expected ':'", at);
        this.#place = "value";
        return;
      case "value":
        if (byte === OPEN_BRACKET && Object.hasOwn(inner.streamed, inner.key)) this.#enterArray(inner, at);
        else if (byte === OPEN_BRACE && Object.hasOwn(inner.streamed, inner.key) && inner.streamed[inner.key]) {
          this.#enter(inner.streamed[inner.key]!, true);
        } else this.#value = new ValueReader(byte, inner.values);
        return;
      case "element": {
        const streamed = inner.streamed[inner.key];
        if (byte === CLOSE_BRACKET && !this.#expectMore) this.#place = "after-value";
        else if (byte === OPEN_BRACE && streamed) this.#enter(streamed, false);
        else this.#value = new ValueReader(byte, 0);
        return;
      }
      case "after-element":
        if (byte === CLOSE_BRACKET) this.#place = "after-value";
        else this.#comma(byte, "element", "expected ',' or ']'", at);
        return;
      default:
        if (byte === CLOSE_BRACE) this.#leave(items);
        else this.#comma(byte, "key", "expected ',' or '}'", at);
    }
  }

  #comma(byte: number, next: Place, message: string, at: number): void {
    if (byte !== COMMA) throw new JsonSyntaxError(message, at);
    this.#expectMore = true;
    this.#place = next;
  }

  #enter(streamed: Streamed, isField: boolean): void {
    this.#open.push({ streamed, fields: Object.create(null), names: 0, values: 0, key: "", index: 0, isField });
    this.#expectMore = false;
    this.#place = "key";
  }

  #enterArray(object: OpenObject, at: number): void {
    // only a streamed array can be in `fields` under this name
    if (Array.isArray(object.fields[object.key])) throw new JsonSyntaxError(`${object.key} is there twice`, at);
    object.fields[object.key] = [];
    object.index = 0;
    this.#expectMore = false;
    this.#place = "element";
  }

  #leave(items: JsonItem[]): void {
    const { fields, isField } = this.#open.pop()!;
    const outer = this.#open.at(-1);
    if (outer && isField) {
      outer.fields[outer.key] = fields;
      this.#place = "after-value";
    } else if (outer) this.#element(outer, { value: fields, text: null }, items);
    else {
      items.push({ path: [], value: fields, text: null });
      this.#place = "end";
    }
  }

  #finishValue(reader: ValueReader, items: JsonItem[]): void {
    const object = this.#open.at(-1)!;
    const read = reader.parse();
    const { value } = read;
    this.#value = null;
    if (this.#place === "key") {
      if (++object.names > MAX_NAMES) throw new JsonSizeError(`an object has more than ${MAX_NAMES} fields`, []);
      object.key = value as string;
      this.#place = "colon";
    } else if (this.#place === "value") {
      object.fields[object.key] = value;
      object.values = reader.values;
      this.#place = "after-value";
    } else this.#element(object, read, items);
  }

  #element(object: OpenObject, read: Omit<JsonItem, "path">, items: JsonItem[]): void {
    if (++this.#count > MAX_ITEMS) throw new JsonSizeError(`the body has more than ${MAX_ITEMS} elements`, []);
    items.push({ path: this.#path(), ...read });
    object.index++;
    this.#place = "after-element";
  }

  /** The path of the element being read. */
  #path(): (string | number)[] {
    const path: (string | number)[] = [];
    for (const [depth, { key, index }] of this.#open.entries()) {
      path.push(key);
      if (!this.#open[depth + 1]?.isField) path.push(index);
    }
    return path;
  }

  #located(error: BadValueError, offset: number): Error {
    const path = this.#path().map((step) => (typeof step === "string" ? step.slice(0, MAX_NAME_LENGTH) : step));
    // the error is in a field, so the path has no index
    if (this.#place !== "element") path.pop();
    const place = path.map((step) => (typeof step === "number" ? `[${step}]` : `.${step}`)).join("");
    const message = `${this.#place === "key" ? "a field name" : place.slice(1)} ${error.message}`;
    return error.tooLarge ? new JsonSizeError(message, path, error) : new JsonSyntaxError(message, offset, error);
  }
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
