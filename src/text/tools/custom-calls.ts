// Calls of custom tools. The model calls them like functions whose only argument is a text, {"input": …}; here that text comes out in
// place of the arguments, as it is written.

import type { CallDelta, ReplyDelta, ReplyParser } from "../reply-parser.ts";

export class CustomCalls implements ReplyParser {
  readonly #parser: ReplyParser;
  readonly #names: ReadonlySet<string>;
  /** Readers of the calls that are custom, by the index of the call. */
  readonly #readers = new Map<number, InputReader>();

  constructor(parser: ReplyParser, names: ReadonlySet<string>) {
    this.#parser = parser;
    this.#names = names;
  }

  push(text: string): ReplyDelta[] {
    return this.#parser.push(text).map((delta) => this.#withInput(delta));
  }

  finish(): ReplyDelta[] {
    return this.#parser.finish().map((delta) => this.#withInput(delta));
  }

  #withInput(delta: ReplyDelta): ReplyDelta {
    if (delta.kind !== "tool_call") return delta;
    if (delta.name !== undefined && this.#names.has(delta.name)) this.#readers.set(delta.index, new InputReader());
    const reader = this.#readers.get(delta.index);
    if (reader === undefined) return delta;
    const { argumentsText, ...call }: CallDelta = delta;
    return { ...call, input: reader.push(argumentsText ?? "") };
  }
}

/** What comes before the text, with space between. */
const OPENING = ["{", '"input"', ":", '"'];
const ESCAPES: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** Reads the text of {"input": …} in pieces. Arguments of another form, which no grammar kept the model from, are the text themselves. */
class InputReader {
  #phase: "opening" | "text" | "end" | "other" = "opening";
  #held = "";

  push(piece: string): string {
    this.#held += piece;
    if (this.#phase === "opening") this.#open();
    if (this.#phase === "text") return this.#text();
    if (this.#phase === "other") return this.#take(this.#held.length);
    return "";
  }

  #open(): void {
    let at = 0;
    for (const literal of OPENING) {
      at += this.#held.slice(at).search(/\S|$/);
      const rest = this.#held.slice(at);
      if (literal.startsWith(rest) && rest !== literal) return; // more may come
      if (!rest.startsWith(literal)) {
        this.#phase = "other";
        return;
      }
      at += literal.length;
    }
    this.#take(at);
    this.#phase = "text";
  }

  /** The text as far as it is known: escapes that are not complete, and halves of surrogate pairs, wait. */
  #text(): string {
    let text = "";
    let at = 0;
    for (let next = 0; at < this.#held.length; at = next) {
      const char = this.#held[at]!;
      if (char === '"') {
        this.#phase = "end";
        break;
      }
      next = at + (char !== "\\" ? 1 : this.#held[at + 1] === "u" ? 6 : 2);
      if (next > this.#held.length) break;
      const half = char === "\\" && /^\\u[dD][89abAB]/.test(this.#held.slice(at, next));
      const mayPair = half && this.#held.length < next + 6 && "\\u".startsWith(this.#held.slice(next, next + 2));
      if (mayPair) break;
      text += char === "\\" ? unescaped(this.#held.slice(at + 1, next)) : char;
    }
    this.#take(at);
    return text;
  }

  /** Forgets the first characters, and returns them. */
  #take(length: number): string {
    const taken = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    return taken;
  }
}

/** `code`: what follows the backslash. */
function unescaped(code: string): string {
  if (/^u[0-9a-fA-F]{4}$/.test(code)) return String.fromCharCode(Number.parseInt(code.slice(1), 16));
  return ESCAPES[code] ?? code;
}
