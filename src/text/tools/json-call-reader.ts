// Reads one tool call written as a JSON object, {"name": …, "arguments" or "parameters": {…}}, while it streams. The name
// comes out when the arguments begin, and the arguments follow as they are written. Text that does not begin like a call is
// handed back unchanged.

import { stringEnd } from "../../json/json-string.ts";
import type { ReplyDelta } from "../reply-parser.ts";
import { Brackets } from "./brackets.ts";
import type { CallProgress, CallReader } from "./call-reader.ts";

export class JsonCallReader implements CallReader {
  readonly #index: number;
  #phase: "header" | "arguments" | "tail" = "header";
  #header = "";
  readonly #brackets = new Brackets();
  /** Something other than space followed the arguments. */
  #tailBegan = false;

  constructor(index: number) {
    this.#index = index;
  }

  /** The call's name was already given out. */
  get committed(): boolean {
    return this.#phase !== "header";
  }

  /** What was read so far and not given out. */
  get held(): string {
    return this.#phase === "header" ? this.#header : "";
  }

  push(text: string): CallProgress {
    const deltas: ReplyDelta[] = [];
    let rest = text;
    if (this.#phase === "header") {
      this.#header += text;
      const header = readHeader(this.#header);
      if (header === "partial") return { state: "reading", deltas, left: "" };
      if (header === "mismatch") return { state: "refused", deltas, left: this.#header };
      deltas.push({ kind: "tool_call", index: this.#index, name: header.name });
      rest = this.#header.slice(header.argumentsAt);
      this.#phase = "arguments";
    }
    if (this.#phase === "arguments") {
      const end = this.#brackets.scan(rest);
      const fragment = rest.slice(0, end);
      if (fragment !== "") deltas.push({ kind: "tool_call", index: this.#index, argumentsText: fragment });
      rest = rest.slice(end);
      if (this.#brackets.depth > 0) return { state: "reading", deltas, left: "" };
      this.#phase = "tail";
      this.#brackets.depth = 1; // the object around the arguments
    }
    if (!this.#tailBegan) {
      rest = rest.trimStart();
      if (rest === "") return { state: "reading", deltas, left: "" };
      this.#tailBegan = true;
      // The brace around the arguments was forgotten: what follows is not part of this call.
      if (rest[0] !== "}" && rest[0] !== ",") return { state: "done", deltas, left: rest };
    }
    const end = this.#brackets.scan(rest);
    if (this.#brackets.depth > 0) return { state: "reading", deltas, left: "" };
    return { state: "done", deltas, left: rest.slice(end) };
  }
}

const SPACE = /[ \t\r\n]*/y;
/** The longest name of a function, with its quotes. A longer one would be read again with every token. */
const LONGEST_NAME = 1024;

/** Where the arguments' opening brace is, once everything before it is there. */
function readHeader(text: string): { name: string; argumentsAt: number } | "partial" | "mismatch" {
  let at = 0;
  const skip = (): void => {
    SPACE.lastIndex = at;
    at += SPACE.exec(text)![0].length;
  };
  /** true: present; null: could still come. */
  const expect = (...literals: readonly string[]): boolean | null => {
    skip();
    const found = literals.find((literal) => text.startsWith(literal, at));
    if (found !== undefined) {
      at += found.length;
      return true;
    }
    const left = text.slice(at);
    return literals.some((literal) => literal.startsWith(left)) ? null : false;
  };
  for (const literals of [["{"], ['"name"'], [":"]]) {
    const present = expect(...literals);
    if (present !== true) return present === null ? "partial" : "mismatch";
  }
  skip();
  if (at === text.length) return "partial";
  if (text[at] !== '"') return "mismatch";
  const nameEnd = stringEnd(text, at) + 1;
  if (nameEnd - at > LONGEST_NAME) return "mismatch";
  if (nameEnd > text.length) return "partial";
  const quoted = text.slice(at, nameEnd);
  at = nameEnd;
  for (const literals of [[","], ['"arguments"', '"parameters"'], [":"]]) {
    const present = expect(...literals);
    if (present !== true) return present === null ? "partial" : "mismatch";
  }
  skip();
  if (at === text.length) return "partial";
  if (text[at] !== "{") return "mismatch";
  try {
    const value = JSON.parse(quoted) as string;
    return value === "" ? "mismatch" : { name: value, argumentsAt: at };
  } catch {
    return "mismatch"; // an escape that JSON does not know
  }
}
