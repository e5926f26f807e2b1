// Bodies: read with bounds, parsed in turns, or left unread.
import type { IncomingMessage } from "node:http";
import { ServiceError } from "../../errors/service-error.ts";
import { markNumbers, markPrintedNumbers } from "../../json/exact-json.ts";
import { isJsonObject, stringEnd } from "../../json/json.ts";

// A reply may be complete before the body of its request is: the path is unknown, the token is missing, the body is too
// large. The rest is read and thrown away, because a client that is still sending would see a broken connection instead
// of the answer. For callers without a token, that ends soon.

const MOST_BYTES = 1024 * 1024;
const LONGEST_MS = 5_000;

/** Closes the connection unless the rest of the body is short; call it when the reply is about to be written. */
export function limitUnread(request: IncomingMessage): void {
  const { socket } = request;
  if (request.complete || socket.destroyed) return;
  const end = socket.bytesRead + MOST_BYTES;
  const timer = setTimeout(() => socket.destroy(), LONGEST_MS).unref();
  // without a listener Node would throw the rest away by itself, however much it is
  request.on("data", () => {
    if (socket.bytesRead > end) socket.destroy();
  });
  request.once("close", () => clearTimeout(timer));
}

// Bytes → a JSON object, safely. UTF-8 is checked. Depth and number of values are bounded before JSON.parse sees the text:
// a long text parses quickly, but 16 MB of `{},` take seconds. Long integers of the top level become bigint, because
// numbers cannot tell 2^63 from 2^63 - 1. Numbers that templates print are kept as written (exact-json.ts). Fields are
// read elsewhere (../schema/reader.ts).

/** Deeper than any schema or message list needs, and shallow enough for every recursive reader after this one. */
export const MAX_DEPTH = 256;

/** Enough for prompts of token ids far beyond any context, and few enough to parse without delaying other requests. */
export const MAX_VALUES = 200_000;

/** Texts, lists and objects cost far more than numbers, here and wherever they are read afterwards. Names of fields count. */
export const MAX_PARTS = 60_000;

const utf8 = new TextDecoder("utf-8", { fatal: true });

export function parseJsonObject(bytes: Uint8Array): Record<string, unknown> {
  const text = decode(bytes);
  const { longIntegers, printed } = scan(text, "The body", allowance(MAX_FIELDS));
  let value: unknown;
  try {
    value = parseMarked(text, printed);
  } catch (error) {
    throw malformed(`The body is not valid JSON (json_invalid): ${(error as Error).message}`, error);
  }
  if (!isJsonObject(value)) throw malformed("The body must be a JSON object.");
  const object: Record<string, unknown> = value;
  for (const [key, integer] of longIntegers) {
    if (object[key] === Number(integer)) object[key] = integer;
  }
  return object;
}

/** `printed`: see Scanned. */
function parseMarked(text: string, printed: Scanned["printed"]): unknown {
  let marked = "";
  let copied = 0;
  for (const { mark, from, to } of printed) {
    marked += text.slice(copied, from) + mark(text.slice(from, to));
    copied = to;
  }
  try {
    return JSON.parse(marked + text.slice(copied));
  } catch {
    return JSON.parse(text); // its error quotes what the client wrote
  }
}

/** What the JSON texts inside the fields of one request may hold together: as much as a body. */
export class InnerJson {
  readonly #left = allowance(Number.POSITIVE_INFINITY);

  /** `mark`: keeps numbers as they are written. */
  parse(text: string, mark: (json: string) => string = (json) => json): unknown {
    scan(text, "The JSON text", this.#left);
    return JSON.parse(mark(text));
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch (error) {
    throw malformed("The body is not valid UTF-8.", error);
  }
}

function malformed(message: string, cause?: unknown): ServiceError {
  return new ServiceError("malformed_json", message, { param: "body", cause });
}

const QUOTE = 0x22;
/** An integer of 16 or more digits may not be exact as a double. Beyond 40 digits it is out of every bound anyway. */
const LONG_INTEGER = /-?\d{16,40}(?![\d.eE])/y;

/** Fields with numbers that templates print, and the function that keeps those numbers as written. */
const PRINTED = new Map([
  ['"chat_template_kwargs"', markNumbers],
  ['"tools"', markPrintedNumbers],
  ['"messages"', markPrintedNumbers],
]);

/** Fields of the outermost object: far more than any request has. */
const MAX_FIELDS = 1_000;

/** What is still allowed. */
interface Allowance {
  values: number;
  parts: number;
  /** Values in PRINTED fields: a template may print them, so even numbers cost as much as texts. */
  printed: number;
  /** Fields of the outermost object. */
  fields: number;
}

const allowance = (fields: number): Allowance => ({
  values: MAX_VALUES,
  parts: MAX_PARTS,
  printed: MAX_PARTS,
  fields,
});

interface Scanned {
  /** By field of the outermost object. */
  longIntegers: Map<string, bigint>;
  /** Where the values of PRINTED fields are, in order. */
  printed: { mark: (json: string) => string; from: number; to: number }[];
}

/**
 * One pass over the text. Refuses documents that are nested too deeply or have too many values. Finds long integers and
 * printed fields of the outermost object. Malformed text may pass: JSON.parse refuses it afterwards.
 */
function scan(text: string, subject: string, left: Allowance): Scanned {
  const longIntegers: Scanned["longIntegers"] = new Map();
  const printed: Scanned["printed"] = [];
  const tooMany = (limit: number, of: string): ServiceError =>
    new ServiceError("too_many_values", `${subject} has more than ${limit} ${of}.`, { param: "body" });
  let depth = 0;
  let key = "";
  let isPrinted = false;
  left.values--;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === QUOTE) {
      if (--left.parts < 0) throw tooMany(MAX_PARTS, "texts, lists and objects");
      const end = stringEnd(text, i);
      if (depth === 1) key = text.slice(i, end + 1);
      i = end;
    } else if (c === 0x7b || c === 0x5b) {
      depth++;
      left.values--; // the first one inside
      if (--left.parts < 0) throw tooMany(MAX_PARTS, "texts, lists and objects");
      if (depth > MAX_DEPTH) throw malformed(`${subject} is nested more than ${MAX_DEPTH} levels deep.`);
      const mark = depth === 2 ? PRINTED.get(key) : undefined;
      if (mark !== undefined) printed.push({ mark, from: i, to: text.length });
      isPrinted ||= mark !== undefined;
    } else if (c === 0x7d || c === 0x5d) {
      depth--;
      if (depth === 1 && isPrinted) printed.at(-1)!.to = i + 1;
      isPrinted &&= depth > 1;
    } else if (c === 0x2c) {
      if (--left.values < 0) throw tooMany(MAX_VALUES, "values");
      if (depth === 1 && --left.fields < 1) throw tooMany(MAX_FIELDS, "fields");
      if (isPrinted && --left.printed < 0) {
        throw tooMany(MAX_PARTS, "values in messages, tools or chat_template_kwargs");
      }
    } else if (depth === 1 && (c === 0x2d || (c >= 0x30 && c <= 0x39))) {
      i = readNumber(text, i, key, longIntegers);
    }
  }
  return { longIntegers, printed };
}

function readNumber(text: string, start: number, key: string, found: Map<string, bigint>): number {
  LONG_INTEGER.lastIndex = start;
  const match = LONG_INTEGER.exec(text);
  if (match !== null) {
    found.set(unquote(key), BigInt(match[0]));
    return start + match[0].length - 1;
  }
  let end = start;
  while (end + 1 < text.length && /[\d.eE+-]/.test(text[end + 1]!)) end++;
  return end;
}

function unquote(key: string): string {
  try {
    return JSON.parse(key) as string;
  } catch {
    return ""; // malformed; JSON.parse of the whole text will say so
  }
}
