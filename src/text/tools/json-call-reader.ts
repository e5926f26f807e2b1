// Reads one tool call written as a JSON object, {"name": …, "arguments" or "parameters": {…}}, while it streams. The name
// comes out when the arguments begin, and the arguments follow as they are written. Text that does not begin like a call is
// handed back unchanged.

import { isJson, stringEnd } from "../../json/json.ts";
import type { ReplyDelta } from "../reply-parser.ts";
import { Brackets, type CallProgress, type CallReader } from "./call-reader.ts";

export class JsonCallReader implements CallReader {
  readonly #index: number;
  #phase: "header" | "arguments" | "tail" = "header";
  #header = "";
  #brackets = new Brackets();
  /** What follows the arguments up to the closing brace. */
  #tail = "";

  constructor(index: number) {
    this.#index = index;
  }

  get committed(): boolean {
    return this.#phase !== "header";
  }

  get held(): string {
    return this.#phase === "header" ? this.#header : this.#tail;
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
      if (this.#brackets.broken) return { state: "done", deltas, left: rest };
      if (this.#brackets.depth > 0) return { state: "reading", deltas, left: "" };
      this.#phase = "tail";
      this.#brackets = new Brackets();
      this.#brackets.depth = 1; // the object around the arguments
    }
    return { deltas, ...this.#readTail(rest) };
  }

  /** The closing brace, perhaps after more members. They are dropped. Anything else is not part of this call. */
  #readTail(text: string): Pick<CallProgress, "state" | "left"> {
    const before = this.#tail.length;
    this.#tail = before === 0 ? text.trimStart() : this.#tail + text;
    if (this.#tail === "") return { state: "reading", left: "" };
    if (this.#tail[0] !== "}" && this.#tail[0] !== ",") return { state: "done", left: this.#tail };
    const end = before + this.#brackets.scan(this.#tail.slice(before));
    if (this.#brackets.depth > 0 && !this.#brackets.broken) return { state: "reading", left: "" };
    return {
      state: "done",
      left: isJson(`{"arguments": {}${this.#tail.slice(0, end)}`) ? this.#tail.slice(end) : this.#tail,
    };
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
