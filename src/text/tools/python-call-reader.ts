// Reads one call in Python syntax, name(key=literal, …), and gives its arguments as JSON while they are written. It knows
// literals only: strings, numbers, True, False, None, lists, tuples and dicts. JSON's spellings are understood too. The name
// comes out with the first value. The first reader of a list of calls reads its opening bracket too.

import { stringPiece } from "../../json/json.ts";
import type { CallProgress, CallReader } from "./call-reader.ts";

const WORDS: Readonly<Record<string, string>> = {
  True: "true",
  False: "false",
  None: "null",
  true: "true",
  false: "false",
  null: "null",
};
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", "0": "\0" };
const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const MAX_DEPTH = 64;

type Bracket = "(" | "[" | "{";
const CLOSES: Readonly<Record<string, Bracket>> = { ")": "(", "]": "[", "}": "{" };

/** What comes next. */
type State =
  | ("list" | "name" | "open" | "argument" | "equals" | "done")
  | ("value" | "token" | "string" | "quote" | "escape" | "key" | "colon" | "after");

export class PythonCallReader implements CallReader {
  readonly #index: number;
  #state: State;
  #committed = false;
  #name = "";
  /** The identifier, number or escape that is being read. */
  #token = "";
  /** Open lists, tuples and dicts. */
  readonly #open: Bracket[] = [];
  #quote = "";
  /** The string has no characters yet: two more quotes make it a long one. */
  #isEmpty = false;
  /** Three quotes end the string. */
  #isLong = false;
  /** Quotes in a row that may end it. */
  #quotes = 0;
  /** The string is a key of a dict. */
  #isKey = false;
  /** JSON that comes before the next value. */
  #before = "{";
  /** Read since JSON was last given out. */
  #held = "";
  #out = "";

  constructor(index: number, opensList: boolean) {
    this.#index = index;
    this.#state = opensList ? "list" : "name";
  }

  get committed(): boolean {
    return this.#committed;
  }

  /** A reply that is cut behind a quote has the rest of a mark there, not content. */
  get held(): string {
    return this.#state === "quote" ? "" : this.#held;
  }

  push(text: string): CallProgress {
    const begun = this.#committed;
    this.#out = "";
    let at = 0;
    let fits = true;
    for (; at < text.length && fits && this.#state !== "done"; at++) {
      this.#held += text[at]!;
      fits = this.#read(text[at]!);
    }
    const deltas: CallProgress["deltas"] = [];
    if (this.#committed && !begun) deltas.push({ kind: "tool_call", index: this.#index, name: this.#name });
    if (this.#out !== "") deltas.push({ kind: "tool_call", index: this.#index, argumentsText: this.#out });
    if (fits && this.#state !== "done") return { state: "reading", deltas, left: "" };
    return { state: this.#committed ? "done" : "refused", deltas, left: this.#held + text.slice(at) };
  }

  /** false: the character does not belong to a call. */
  #read(char: string): boolean {
    if (this.#state === "string") return this.#string(char);
    if (this.#state === "quote") return this.#quoted(char);
    if (this.#state === "escape") return this.#escape(char);
    if (this.#state === "token") {
      if (/[\w.+-]/.test(char)) {
        this.#token += char;
        return true;
      }
      return this.#endToken() && this.#read(char);
    }
    if (this.#state === "name" || this.#state === "argument") {
      if (/[A-Za-z_]/.test(char) || (this.#token !== "" && /[\w.-]/.test(char))) {
        this.#token += char;
        return true;
      }
      if (this.#token !== "") return this.#endIdentifier() && this.#read(char);
    }
    return /\s/.test(char) || this.#mark(char);
  }

  /** A character between values. */
  #mark(char: string): boolean {
    switch (this.#state) {
      case "list":
        return this.#expect(char, "[", "name");
      case "open":
        return this.#expect(char, "(", "argument");
      case "equals":
        return this.#expect(char, "=", "value");
      case "colon":
        this.#before = ": ";
        return this.#expect(char, ":", "value");
      case "argument":
        return char === ")" && this.#endCall();
      case "key":
        return char === "}" ? this.#close(char) : /["']/.test(char) && this.#openString(char, true);
      case "value":
        return this.#value(char);
      case "after":
        return char === "," ? this.#comma() : this.#close(char);
      default:
        return false;
    }
  }

  #expect(char: string, wanted: string, next: State): boolean {
    this.#state = next;
    return char === wanted;
  }

  #value(char: string): boolean {
    if (/["']/.test(char)) return this.#openString(char, false);
    if (char === "[" || char === "(" || char === "{") {
      if (this.#open.push(char) > MAX_DEPTH) return false;
      this.#state = char === "{" ? "key" : "value";
      return this.#give(this.#before + (char === "{" ? "{" : "["));
    }
    if (/[\w.+-]/.test(char)) {
      this.#token = char;
      this.#state = "token";
      return true;
    }
    return this.#open.length > 0 && this.#close(char);
  }

  #comma(): boolean {
    const inside = this.#open.at(-1);
    this.#token = "";
    this.#before = ", ";
    this.#state = inside === undefined ? "argument" : inside === "{" ? "key" : "value";
    return true;
  }

  #close(char: string): boolean {
    if (this.#open.length === 0) return char === ")" && this.#endCall();
    if (CLOSES[char] !== this.#open.at(-1)) return false;
    this.#open.pop();
    this.#state = "after";
    return this.#give(char === "}" ? "}" : "]");
  }

  #endCall(): boolean {
    this.#state = "done";
    return this.#give(this.#committed ? "}" : "{}");
  }

  #endIdentifier(): boolean {
    if (this.#state === "name") this.#name = this.#token;
    else this.#before += `"${stringPiece(this.#token)}": `;
    this.#state = this.#state === "name" ? "open" : "equals";
    this.#token = "";
    return true;
  }

  #endToken(): boolean {
    const token = this.#token;
    if (!Object.hasOwn(WORDS, token) && !(NUMBER.test(token) && Number.isFinite(Number(token)))) return false;
    this.#state = "after";
    // Numbers are copied if they are JSON, so that long integers keep their digits.
    const value = WORDS[token] ?? (JSON_NUMBER.test(token) ? token : JSON.stringify(Number(token)));
    const delimiter = this.#held.at(-1)!;
    this.#give(this.#before + value);
    this.#held = delimiter;
    return true;
  }

  #openString(quote: string, isKey: boolean): boolean {
    this.#quote = quote;
    this.#isKey = isKey;
    this.#isEmpty = true;
    this.#isLong = false;
    this.#state = "string";
    return this.#give(`${this.#before}"`);
  }

  #string(char: string): boolean {
    if (char === this.#quote) {
      if (!this.#isLong && !this.#isEmpty) return this.#endString();
      this.#quotes = 1;
      this.#state = "quote";
      return true;
    }
    this.#isEmpty = false;
    if (char !== "\\") return this.#give(stringPiece(char));
    this.#token = "";
    this.#state = "escape";
    return true;
  }

  /** Behind quotes that may end the string, or open a long one. */
  #quoted(char: string): boolean {
    if (this.#isLong && char === this.#quote) return ++this.#quotes < 3 || this.#endString();
    if (this.#isLong) {
      this.#state = "string";
      this.#give(stringPiece(this.#quote.repeat(this.#quotes)));
    } else if (char === this.#quote) {
      this.#isLong = true;
      this.#state = "string";
      return true;
    } else this.#endString();
    this.#held = char;
    return this.#read(char);
  }

  #endString(): boolean {
    this.#state = this.#isKey ? "colon" : "after";
    return this.#give('"');
  }

  #escape(char: string): boolean {
    this.#token += char;
    const letter = this.#token[0]!;
    const digits = this.#token.slice(1);
    const length = letter === "x" ? 2 : letter === "u" ? 4 : letter === "U" ? 8 : 0;
    if (!/^[0-9A-Fa-f]*$/.test(digits)) return false;
    if (digits.length < length) return true;
    this.#state = "string";
    if (length === 0) {
      return this.#give(stringPiece(ESCAPES[letter] ?? (/[\\'"/]/.test(letter) ? letter : `\\${letter}`)));
    }
    const code = Number.parseInt(digits, 16);
    if (code > 0x10ffff) return false;
    return this.#give(stringPiece(code > 0xffff ? String.fromCodePoint(code) : String.fromCharCode(code)));
  }

  /** Gives out JSON for everything read so far. */
  #give(json: string): true {
    this.#committed = true;
    this.#out += json;
    this.#before = "";
    this.#held = "";
    return true;
  }
}
