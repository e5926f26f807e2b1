// Reads one call in Python syntax, name(key=literal, …), and gives its name and its arguments as JSON text. It knows literals
// only: strings, numbers, True, False, None, lists, tuples and dicts. JSON's spellings are understood too.

export type PythonCall = { name: string; argumentsText: string; end: number };

class Incomplete extends Error {}
class Malformed extends Error {}

const IDENTIFIER = /[A-Za-z_][\w.-]*/y;
const NUMERIC = /[\d.eE+-]+/y;
const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
const words: Record<string, string> = {
  True: "true",
  False: "false",
  None: "null",
  true: "true",
  false: "false",
  null: "null",
};
const escapes: Record<string, string> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", "0": "\0" };
const MAX_DEPTH = 64;

/** Reads one call from `at` on. "partial": a longer text could still complete it. */
export function readPythonCall(text: string, at: number): PythonCall | "partial" | "mismatch" {
  try {
    return new CallReader(text, at).call();
  } catch (error) {
    if (error instanceof Incomplete) return "partial";
    if (error instanceof Malformed) return "mismatch";
    throw error;
  }
}

class CallReader {
  readonly #text: string;
  #at: number;

  constructor(text: string, at: number) {
    this.#text = text;
    this.#at = at;
  }

  call(): PythonCall {
    const name = this.#name();
    this.#expect("(");
    const members: string[] = [];
    while (!this.#taken(")")) {
      if (members.length > 0) this.#expect(",");
      if (this.#taken(")")) break;
      const key = this.#name();
      this.#expect("=");
      members.push(`${JSON.stringify(key)}: ${this.#value(0)}`);
    }
    return { name, argumentsText: `{${members.join(", ")}}`, end: this.#at };
  }

  #value(depth: number): string {
    if (depth > MAX_DEPTH) throw new Malformed();
    const char = this.#peek();
    if (char === '"' || char === "'") return JSON.stringify(this.#string(char));
    if (char === "[") return `[${this.#list("[", "]", depth).join(", ")}]`;
    if (char === "(") return `[${this.#list("(", ")", depth).join(", ")}]`;
    if (char === "{") return this.#dict(depth);
    if (/[\d+.-]/.test(char)) return this.#number();
    const word = this.#name();
    if (!Object.hasOwn(words, word)) throw new Malformed();
    return words[word]!;
  }

  #list(open: string, close: string, depth: number): string[] {
    this.#expect(open);
    const items: string[] = [];
    while (!this.#taken(close)) {
      if (items.length > 0) this.#expect(",");
      if (this.#taken(close)) break;
      items.push(this.#value(depth + 1));
    }
    return items;
  }

  #dict(depth: number): string {
    this.#expect("{");
    const members: string[] = [];
    while (!this.#taken("}")) {
      if (members.length > 0) this.#expect(",");
      if (this.#taken("}")) break;
      const quote = this.#peek();
      if (quote !== '"' && quote !== "'") throw new Malformed();
      const key = this.#string(quote);
      this.#expect(":");
      members.push(`${JSON.stringify(key)}: ${this.#value(depth + 1)}`);
    }
    return `{${members.join(", ")}}`;
  }

  #string(quote: string): string {
    this.#expect(quote);
    let out = "";
    for (;;) {
      if (this.#at >= this.#text.length) throw new Incomplete();
      const char = this.#text[this.#at++]!;
      if (char === quote) return out;
      out += char === "\\" ? this.#escape() : char;
    }
  }

  #escape(): string {
    const letter = this.#text[this.#at++];
    if (letter === undefined) throw new Incomplete();
    const length = letter === "x" ? 2 : letter === "u" ? 4 : letter === "U" ? 8 : 0;
    if (length === 0) return escapes[letter] ?? (/[\\'"/]/.test(letter) ? letter : `\\${letter}`);
    const digits = this.#text.slice(this.#at, this.#at + length);
    if (!/^[0-9A-Fa-f]*$/.test(digits)) throw new Malformed();
    if (digits.length < length) throw new Incomplete();
    this.#at += length;
    const code = Number.parseInt(digits, 16);
    if (code > 0x10ffff) throw new Malformed();
    return code > 0xffff ? String.fromCodePoint(code) : String.fromCharCode(code);
  }

  #number(): string {
    const digits = this.#match(NUMERIC);
    const value = Number(digits);
    if (!NUMBER.test(digits) || !Number.isFinite(value)) throw new Malformed();
    // Copied if it is JSON, so that long integers keep their digits.
    return /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(digits) ? digits : JSON.stringify(value);
  }

  #name(): string {
    this.#peek();
    return this.#match(IDENTIFIER);
  }

  /** A match that reaches the end of the text could still grow. */
  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found === undefined) throw new Malformed();
    this.#at += found.length;
    if (this.#at >= this.#text.length) throw new Incomplete();
    return found;
  }

  /** The next character that is not space. */
  #peek(): string {
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at++;
    if (this.#at >= this.#text.length) throw new Incomplete();
    return this.#text[this.#at]!;
  }

  #taken(char: string): boolean {
    if (this.#peek() !== char) return false;
    this.#at++;
    return true;
  }

  #expect(char: string): void {
    if (!this.#taken(char)) throw new Malformed();
  }
}
