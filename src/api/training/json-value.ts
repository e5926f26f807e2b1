// One JSON value from its bytes. Says what is wrong with it, not where it was.

import { stringEnd } from "../http/json-string.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** The message goes on after the name of the value: "is not valid JSON". */
export class BadValueError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "BadValueError";
  }
}

/** Python's writers spell non-finite numbers NaN and Infinity. Read as infinite, they are refused by name and place. */
export function parseValue(bytes: Uint8Array): unknown {
  const text = decode(bytes);
  try {
    return parse(text);
  } catch (error) {
    const readable = withInfinities(text);
    if (readable === null) throw error;
    return parse(readable);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new BadValueError("is not valid JSON", cause);
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    // anything else is a fault of ours
    if (!(cause instanceof TypeError)) throw cause;
    throw new BadValueError("is not valid UTF-8", cause);
  }
}

/** The text with numbers that JSON.parse reads as infinite; null when it has no non-finite ones. */
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
