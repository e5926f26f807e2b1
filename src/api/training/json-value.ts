// Reads one JSON value from a stream of bytes: finds its end, counts its values, parses it. Bounds depth and number of
// values as the bytes arrive, so that later code cannot recurse too deeply or block for long. Numbers that templates
// print keep their written form. Errors say what is wrong with a value, not where it is.

import { markPrintedNumbers, TooManyNumbers } from "../../json/exact-json.ts";
import { stringEnd } from "../../json/json.ts";

/**
 * Limit for one trajectory or example, and for the fields kept of one object. A sampled token takes 7 to 11 values (its
 * log-probability entry, with or without bytes, and its id), so this leaves room for 180,000 tokens, or for 40 turns
 * that each carry a prompt of 32,768 ids. Parsing blocks everyone else: tens of milliseconds for what trainers send
 * (32,768 tokens).
 */
export const MAX_VALUES = 2_000_000;

/** Texts, lists and objects, the names of fields included, of one value. They cost far more than numbers. */
export const MAX_PARTS = 500_000;

/** Fields of one object. Each new name costs more than a value. */
export const MAX_FIELDS = 10_000;

/** Numbers of one value that templates print: in the arguments of calls and the parameters of tools. */
const MAX_PRINTED_NUMBERS = 60_000;

const MAX_DEPTH = 200;
const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d];

/** The message continues the name of the value, as in "is not valid JSON". */
export class BadValueError extends Error {
  /** The value may be valid, but it is larger than allowed. */
  readonly tooLarge: boolean;

  constructor(message: string, { tooLarge = false, cause }: { tooLarge?: boolean; cause?: unknown } = {}) {
    super(message, { cause });
    this.name = "BadValueError";
    this.tooLarge = tooLarge;
  }
}

export class ValueReader {
  readonly #parts: Uint8Array[] = [];
  #depth = 0;
  #inString: boolean;
  #escaped = false;
  #values: number;
  #costly = 0;
  /** For each open list or object, outermost first: fields of the object so far, or null in a list. */
  readonly #fields: (number | null)[] = [];
  /** Whether the byte that ended the value belongs to it, unlike a separator or an enclosing bracket. */
  closed = false;

  /** `first` is the value's first byte. `held` counts towards the limit in addition to this value. */
  constructor(first: number, held: number) {
    this.#inString = first === QUOTE;
    this.#values = held;
    this.#count();
    if (this.#inString) this.#costs();
    if (first === OPEN_BRACE || first === OPEN_BRACKET) this.#open(first);
  }

  /** Includes those held. */
  get values(): number {
    return this.#values;
  }

  /** Takes the next byte. Returns false when the value is complete. */
  goesOn(byte: number): boolean {
    if (this.#inString) return this.#inText(byte);
    switch (byte) {
      case QUOTE:
        this.#inString = true;
        this.#costs();
        return true;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        this.#open(byte);
        return true;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        if (this.#depth === 0) return false;
        this.#fields.pop();
        this.closed = --this.#depth === 0;
        return !this.closed;
      case COMMA:
        if (this.#depth === 0) return false;
        this.#count();
        this.#countField();
        return true;
      default:
        return true;
    }
  }

  /** Adds a slice of the value's bytes. */
  add(bytes: Uint8Array): void {
    this.#parts.push(bytes);
  }

  parse(): ReadValue {
    return readJson(this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts));
  }

  #inText(byte: number): boolean {
    if (this.#escaped) this.#escaped = false;
    else if (byte === BACKSLASH) this.#escaped = true;
    else if (byte === QUOTE) {
      this.#inString = false;
      this.closed = this.#depth === 0;
    }
    return !this.closed;
  }

  #open(byte: number): void {
    if (++this.#depth > MAX_DEPTH) throw new BadValueError("is nested too deeply");
    this.#fields.push(byte === OPEN_BRACE ? 1 : null);
    this.#costs();
    this.#count(); // the first one inside
  }

  #countField(): void {
    const fields = this.#fields.at(-1);
    if (fields === undefined || fields === null) return;
    if (fields >= MAX_FIELDS) {
      throw new BadValueError(`has an object of more than ${MAX_FIELDS} fields`, { tooLarge: true });
    }
    this.#fields[this.#fields.length - 1] = fields + 1;
  }

  #costs(): void {
    if (++this.#costly > MAX_PARTS) {
      throw new BadValueError(`has more than ${MAX_PARTS} texts, lists and objects`, { tooLarge: true });
    }
  }

  #count(): void {
    if (++this.#values > MAX_VALUES) throw new BadValueError(`has more than ${MAX_VALUES} values`, { tooLarge: true });
  }
}

/** A value and the JSON that it was read from. NaN and Infinity are written as 1e999 there. */
export interface ReadValue {
  value: unknown;
  text: string;
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Python writes NaN and Infinity. Both are read as infinite, so the schema refuses them by field and path. */
function readJson(bytes: Uint8Array): ReadValue {
  const text = decode(bytes);
  try {
    return { value: parseValue(text), text };
  } catch (error) {
    const readable = withInfinities(text);
    if (readable === null) throw error;
    return { value: parseValue(readable), text: readable };
  }
}

/** Throws if the text is not JSON. */
export function parseValue(text: string): unknown {
  try {
    return JSON.parse(markPrintedNumbers(text, MAX_PRINTED_NUMBERS));
  } catch (cause) {
    if (cause instanceof TooManyNumbers) {
      const message = `has more than ${MAX_PRINTED_NUMBERS} numbers in tools and their calls`;
      throw new BadValueError(message, { tooLarge: true, cause });
    }
    throw new BadValueError("is not valid JSON", { cause });
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    if (cause instanceof TypeError) throw new BadValueError("is not valid UTF-8", { cause });
    throw new BadValueError("is longer than a text can be", { tooLarge: true, cause });
  }
}

/** Replaces NaN and Infinity by a number that JSON.parse reads as infinite; null if there are none. */
function withInfinities(text: string): string | null {
  const quoteOrNonFinite = /"|\b(?:NaN|Infinity)\b/g;
  const pieces: string[] = [];
  let from = 0;
  for (let match = quoteOrNonFinite.exec(text); match !== null; match = quoteOrNonFinite.exec(text)) {
    if (match[0] === '"') quoteOrNonFinite.lastIndex = stringEnd(text, match.index) + 1;
    else {
      pieces.push(text.slice(from, match.index), "1e999");
      from = quoteOrNonFinite.lastIndex;
    }
  }
  return pieces.length === 0 ? null : pieces.join("") + text.slice(from);
}
