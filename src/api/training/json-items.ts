// Reads a large JSON object from a stream of bytes without ever holding all of it: the elements of the arrays named in
// `streamed` come out one by one, every other top-level value comes out whole. Only structure is scanned here; each
// value's own syntax is json-value's business. Depth is bounded, so that nothing behind this recurses without end.

import { BadValueError, parseValue } from "./json-value.ts";

export type JsonItem =
  | { type: "element"; key: string; index: number; value: unknown }
  | { type: "field"; key: string; value: unknown };

export class JsonSyntaxError extends Error {
  /** Byte offset in the body. */
  readonly offset: number;

  constructor(message: string, offset: number, cause?: unknown) {
    super(message, { cause });
    this.name = "JsonSyntaxError";
    this.offset = offset;
  }
}

const MAX_DEPTH = 200;
const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d];

/** Where the scanner is in the outer object; inside values it only counts. */
type Place = "start" | "key" | "colon" | "value" | "element" | "after-element" | "after-value" | "end";

export class JsonItems {
  readonly #streamed: ReadonlySet<string>;
  /** Streamed arrays that have begun, empty ones too. */
  readonly seen = new Set<string>();
  #place: Place = "start";
  /** Whether a key or element must follow (a comma came before). */
  #expectMore = false;
  #key = "";
  #index = 0;
  #parts: Uint8Array[] = [];
  #depth = 0;
  #inString = false;
  #escaped = false;
  #capturing = false;
  /** The byte just seen is the last one of its value, not the separator or bracket behind it. */
  #closesValue = false;
  #offset = 0;

  constructor(streamed: readonly string[]) {
    this.#streamed = new Set(streamed);
  }

  /** Items completed by this chunk. */
  push(chunk: Uint8Array): JsonItem[] {
    const items: JsonItem[] = [];
    let from = 0;
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i]!;
      if (this.#capturing) {
        if (this.#continues(byte, i)) continue;
        this.#parts.push(chunk.slice(from, this.#closesValue ? i + 1 : i));
        this.#finishValue(items, this.#offset + i);
        if (this.#closesValue) continue;
      }
      if (isSpace(byte)) continue;
      if (this.#structure(byte, i)) from = i;
    }
    if (this.#capturing) this.#parts.push(chunk.slice(from));
    this.#offset += chunk.length;
    return items;
  }

  /** Throws unless the object was complete. */
  finish(): void {
    if (this.#place !== "end") throw new JsonSyntaxError("the JSON ends too early", this.#offset);
  }

  /** One byte inside a value; false when the value is complete. */
  #continues(byte: number, i: number): boolean {
    this.#closesValue = false;
    if (this.#inString) {
      if (this.#escaped) this.#escaped = false;
      else if (byte === BACKSLASH) this.#escaped = true;
      else if (byte === QUOTE) {
        this.#inString = false;
        if (this.#depth === 0) {
          this.#closesValue = true;
          return false;
        }
      }
      return true;
    }
    switch (byte) {
      case QUOTE:
        this.#inString = true;
        return true;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (++this.#depth > MAX_DEPTH) throw new JsonSyntaxError("nested too deeply", this.#offset + i);
        return true;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        if (this.#depth === 0) return false;
        if (--this.#depth > 0) return true;
        this.#closesValue = true;
        return false;
      case COMMA:
        return this.#depth > 0;
      default:
        return true;
    }
  }

  /** One byte of the outer structure; true when it begins a value to capture. */
  #structure(byte: number, i: number): boolean {
    switch (this.#place) {
      case "start":
        if (byte !== OPEN_BRACE) throw this.#unexpected(i, "expected an object");
        this.#place = "key";
        return false;
      case "key":
        if (byte === CLOSE_BRACE && !this.#expectMore) return this.#goto("end");
        if (byte !== QUOTE) throw this.#unexpected(i, "expected a field name");
        return this.#capture(byte);
      case "colon":
        if (byte !== COLON) throw this.#unexpected(i, "expected ':'");
        return this.#goto("value");
      case "value":
        if (byte === OPEN_BRACKET && this.#streamed.has(this.#key)) {
          if (this.seen.has(this.#key)) throw this.#unexpected(i, `${this.#key} is there twice`);
          this.seen.add(this.#key);
          this.#index = 0;
          this.#expectMore = false;
          return this.#goto("element");
        }
        return this.#capture(byte);
      case "element":
        if (byte === CLOSE_BRACKET && !this.#expectMore) return this.#goto("after-value");
        return this.#capture(byte);
      case "after-element":
        if (byte === CLOSE_BRACKET) return this.#goto("after-value");
        if (byte !== COMMA) throw this.#unexpected(i, "expected ',' or ']'");
        this.#expectMore = true;
        return this.#goto("element");
      case "after-value":
        if (byte === CLOSE_BRACE) return this.#goto("end");
        if (byte !== COMMA) throw this.#unexpected(i, "expected ',' or '}'");
        this.#expectMore = true;
        return this.#goto("key");
      default:
        throw this.#unexpected(i, "nothing may follow the object");
    }
  }

  #goto(place: Place): false {
    this.#place = place;
    return false;
  }

  #capture(byte: number): true {
    this.#capturing = true;
    this.#inString = byte === QUOTE;
    this.#depth = byte === OPEN_BRACE || byte === OPEN_BRACKET ? 1 : 0;
    return true;
  }

  #finishValue(items: JsonItem[], offset: number): void {
    this.#capturing = false;
    const value = this.#parse(offset);
    this.#parts = [];
    if (this.#place === "key") {
      this.#key = value as string;
      this.#place = "colon";
    } else if (this.#place === "value") {
      items.push({ type: "field", key: this.#key, value });
      this.#place = "after-value";
    } else {
      items.push({ type: "element", key: this.#key, index: this.#index++, value });
      this.#place = "after-element";
    }
  }

  #parse(offset: number): unknown {
    try {
      const bytes = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts);
      return parseValue(bytes);
    } catch (cause) {
      if (!(cause instanceof BadValueError)) throw cause;
      const where = this.#place === "element" ? `${this.#key}[${this.#index}]` : this.#key || "the first field";
      throw new JsonSyntaxError(`${where} ${cause.message}`, offset, cause);
    }
  }

  #unexpected(i: number, message: string): JsonSyntaxError {
    return new JsonSyntaxError(message, this.#offset + i);
  }
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
