// Small questions about JSON.

// Tells JSON objects from lists, null and plain values.

export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// Whether a text is JSON.
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

// The lines of a text that arrives in pieces. Only "\n" ends a line. node:readline of newer Node versions also splits at
// U+2028 and U+2029, which JSON strings may contain.
export async function* linesOf(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = "";
  for await (const piece of pieces) {
    const [first, ...others] = piece.split("\n");
    rest += first;
    for (const other of others) {
      yield rest;
      rest = other;
    }
  }
  if (rest !== "") yield rest;
}

// Finds the end of a string in JSON text. A regular expression that repeats an alternative would recurse once per
// character and overflow the stack on a string of some megabytes.

const BACKSLASH = 0x5c;

/** Index of the closing quote of the string that opens at `start`; the end of the text if it never closes. */
export function stringEnd(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1 && escaped(text, end)) end = text.indexOf('"', end + 1);
  return end === -1 ? text.length : end;
}

function escaped(text: string, quote: number): boolean {
  let slashes = 0;
  while (text.charCodeAt(quote - 1 - slashes) === BACKSLASH) slashes++;
  return slashes % 2 === 1;
}

const ESCAPES: Readonly<Record<string, string>> = { '"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** A piece of text as it stands between the quotes of a JSON string. Joined pieces are the whole text, wherever it is cut. */
export function stringPiece(text: string): string {
  // JSON.stringify would escape half a surrogate pair.
  return text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON escapes them
    /["\\\u0000-\u001f]/g,
    (char) => ESCAPES[char] ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
