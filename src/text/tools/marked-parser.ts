// Tool calls behind marks: text, then a mark, one or more calls, and text again. The formats differ in their marks and in how
// a call is read (tool-format.ts). What begins like a call but is none stays content, including its mark.

import { markerPrefix } from "../reasoning.ts";
import type { ReplyDelta, ReplyParser } from "../reply-parser.ts";
import type { CallReader } from "./call-reader.ts";

export interface CallSyntax {
  /** Marks in front of a call or of a list of calls. */
  readonly opens: readonly string[];
  /** Marks between and behind calls. They are not content. */
  readonly closes: readonly string[];
  /** A list of calls may also begin the reply without a mark. */
  readonly bareList?: boolean;
  /** `mark`: what stands before the call; "," inside a list. */
  reader(index: number, mark: string): CallReader;
}

export class MarkedParser implements ReplyParser {
  readonly #syntax: CallSyntax;
  #phase: "start" | "text" | "call" | "after" = "start";
  #held = "";
  #mark = "";
  #reader: CallReader | null = null;
  #calls = 0;
  /** A mark followed the last call: a comma does not announce another one. */
  #listEnded = false;
  /** Ids that calls of this reply have. */
  readonly #ids = new Set<string>();

  constructor(syntax: CallSyntax) {
    this.#syntax = syntax;
  }

  push(text: string): ReplyDelta[] {
    const deltas: ReplyDelta[] = [];
    this.#held += text;
    while (this.#step(deltas));
    return deltas;
  }

  finish(): ReplyDelta[] {
    const deltas: ReplyDelta[] = [];
    if (this.#phase === "call") {
      const { committed, held } = this.#reader!;
      this.#content(committed ? held : this.#mark + held, deltas);
    } else if (this.#phase !== "after" || !this.#isCutClose()) this.#content(this.#held, deltas);
    return deltas;
  }

  /** Takes one step through the held text; false if it needs more text. */
  #step(deltas: ReplyDelta[]): boolean {
    switch (this.#phase) {
      case "start":
        return this.#start();
      case "text":
        return this.#text(deltas);
      case "call":
        return this.#call(deltas);
      default:
        return this.#after();
    }
  }

  #start(): boolean {
    const rest = this.#held.trimStart();
    if (rest === "") return false;
    if (this.#syntax.bareList && rest[0] === "[") this.#open("", this.#held);
    else this.#phase = "text";
    return true;
  }

  #text(deltas: ReplyDelta[]): boolean {
    const { opens } = this.#syntax;
    const found = firstMark(this.#held, opens);
    if (found !== null) {
      const before = this.#held.slice(0, found.at);
      this.#content(this.#calls > 0 ? before.trimEnd() : before, deltas);
      this.#open(found.mark, this.#held.slice(found.at + found.mark.length));
      return true;
    }
    let keep = Math.max(0, ...opens.map((mark) => markerPrefix(this.#held, mark)));
    // Blank space between calls is layout, not content: wait for what follows it.
    if (this.#calls > 0) {
      const before = this.#held.slice(0, this.#held.length - keep);
      keep += before.length - before.trimEnd().length;
    }
    this.#content(this.#held.slice(0, this.#held.length - keep), deltas);
    this.#held = this.#held.slice(this.#held.length - keep);
    return false;
  }

  #open(mark: string, rest: string): void {
    this.#mark = mark;
    this.#listEnded = false;
    this.#held = rest;
    this.#reader = this.#syntax.reader(this.#calls, mark);
    this.#phase = "call";
  }

  #call(deltas: ReplyDelta[]): boolean {
    if (this.#held === "") return false;
    const progress = this.#reader!.push(this.#held);
    for (const delta of progress.deltas) deltas.push(this.#withNewId(delta));
    this.#held = progress.left;
    if (progress.state === "reading") return false;
    if (progress.state === "done") {
      this.#calls++;
      this.#phase = "after";
      return true;
    }
    // no call: its mark is content, and what follows may have other marks
    this.#content(this.#mark, deltas);
    this.#phase = "text";
    return true;
  }

  /** Behind a call: more calls of a list, marks, or text. */
  #after(): boolean {
    const rest = this.#held.trimStart();
    const { opens, closes } = this.#syntax;
    const marks = [...opens, ...closes].filter((mark) => mark !== "," || !this.#listEnded);
    const found = marks.find((mark) => rest.startsWith(mark));
    // a mark may be the beginning of a longer one
    if (found === undefined && marks.some((mark) => mark.startsWith(rest))) return false;
    if (found === undefined) this.#phase = "text";
    else if (opens.includes(found)) this.#open(found, rest.slice(found.length));
    else if (found === ",") this.#open(found, rest.slice(1));
    else {
      this.#held = rest.slice(found.length);
      this.#listEnded = true;
    }
    return true;
  }

  /** The reply ends inside a mark behind a call. */
  #isCutClose(): boolean {
    return this.#syntax.closes.some((mark) => mark.startsWith(this.#held.trimStart()));
  }

  /** An id that the model has used before would not tell calls apart. */
  #withNewId(delta: ReplyDelta): ReplyDelta {
    if (delta.kind !== "tool_call" || delta.id === undefined) return delta;
    const { id, ...plain } = delta;
    if (this.#ids.has(id)) return plain;
    this.#ids.add(id);
    return delta;
  }

  #content(text: string, deltas: ReplyDelta[]): void {
    if (text === "" || (this.#calls > 0 && text.trim() === "")) return;
    deltas.push({ kind: "content", text });
  }
}

/** The first mark in the text. */
function firstMark(text: string, marks: readonly string[]): { mark: string; at: number } | null {
  let first: { mark: string; at: number } | null = null;
  for (const mark of marks) {
    const at = text.indexOf(mark);
    if (at >= 0 && (first === null || at < first.at)) first = { mark, at };
  }
  return first;
}
