// Finds the first mistake in a JSON text. Browsers name the place of a syntax error in different ways, or not at all.

export interface JsonError {
  /** UTF-16 units from the beginning. */
  offset: number;
  message: string;
}

const LITERAL = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them in strings
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y;

/** Null if the text is JSON. */
export function jsonError(text: string): JsonError | null {
  try {
    JSON.parse(text);
    return null;
  } catch {
    const scanner = new Scanner(text);
    return scanner.value() ?? scanner.end();
  }
}

class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(): JsonError | null {
    this.#space();
    if (this.#take("{")) return this.#list("}", () => this.#member());
    if (this.#take("[")) return this.#list("]", () => this.value());
    if (this.#text[this.#at] === '"') return this.#string();
    return this.#match(LITERAL) ? null : this.#wrong("a value");
  }

  /** Nothing may follow. */
  end(): JsonError | null {
    this.#space();
    return this.#at === this.#text.length ? null : this.#wrong("the end");
  }

  #list(close: string, item: () => JsonError | null): JsonError | null {
    this.#space();
    if (this.#take(close)) return null;
    for (;;) {
      const error = item();
      if (error !== null) return error;
      this.#space();
      if (this.#take(close)) return null;
      if (!this.#take(",")) return this.#wrong(`a comma or ${close}`);
    }
  }

  #member(): JsonError | null {
    this.#space();
    const error = this.#string("a name in double quotes");
    if (error !== null) return error;
    this.#space();
    return this.#take(":") ? this.value() : this.#wrong("a colon");
  }

  #string(what = "a string that ends, without bare control characters"): JsonError | null {
    return this.#match(STRING) ? null : this.#wrong(what);
  }

  #match(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found !== null) this.#at += found[0].length;
    return found !== null;
  }

  #take(sign: string): boolean {
    if (this.#text[this.#at] !== sign) return false;
    this.#at++;
    return true;
  }

  #space(): void {
    while (/[ \t\n\r]/.test(this.#text[this.#at] ?? "")) this.#at++;
  }

  #wrong(wanted: string): JsonError {
    return { offset: this.#at, message: `This is not JSON: expected ${wanted}.` };
  }
}
