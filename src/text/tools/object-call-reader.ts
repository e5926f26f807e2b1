// Reads one call that is a JSON object, {"name": …, "arguments": {…}}, alone or in a list. The first reader of a list reads
// its opening bracket too. Calls with their keys in another order, or with arguments as text, come out whole. Without a mark in front, only
// an object with a name and arguments, and no keys that calls do not have, is a call: answers may be JSON too.

import { Brackets } from "./brackets.ts";
import { CallKeys } from "./call-keys.ts";
import type { CallProgress, CallReader } from "./call-reader.ts";
import { JsonCallReader } from "./json-call-reader.ts";
import { wholeCall } from "./whole-call.ts";

export class ObjectCallReader implements CallReader {
  readonly #index: number;
  readonly #call: JsonCallReader;
  /** null: a mark said that a call comes. */
  readonly #keys: CallKeys | null;
  /** The bracket must come before the call. */
  #awaitsList: boolean;
  #phase: "start" | "call" | "object" = "start";
  /** Everything, until the name is given out. */
  #text = "";
  /** How much of it comes before the object. */
  #before = 0;
  /** How much of it the brackets have seen. */
  #seen = 0;
  readonly #brackets = new Brackets();

  constructor(index: number, { opensList = false, marked = true } = {}) {
    this.#index = index;
    this.#keys = marked ? null : new CallKeys();
    this.#awaitsList = opensList;
    this.#call = new JsonCallReader(index);
  }

  get committed(): boolean {
    return this.#call.committed;
  }

  get held(): string {
    return this.committed ? this.#call.held : this.#text;
  }

  push(text: string): CallProgress {
    if (this.committed) return this.#call.push(text);
    this.#text += text;
    if (this.#phase === "object") return this.#object();
    let added = text;
    if (this.#phase === "start") {
      const start = this.#start();
      if (start === "partial") return { state: "reading", deltas: [], left: "" };
      if (start === "mismatch") return { state: "refused", deltas: [], left: this.#text };
      this.#phase = "call";
      added = this.#text.slice(this.#before);
    }
    const progress = this.#call.push(added);
    if (progress.state !== "refused") return progress;
    this.#phase = "object";
    this.#seen = this.#before;
    return this.#object();
  }

  /** Finds the object's opening brace, after the list's bracket. */
  #start(): "partial" | "mismatch" | "found" {
    for (let i = this.#before; i < this.#text.length; i++) {
      const char = this.#text[i]!;
      this.#before = i;
      if (char === "{") return this.#awaitsList ? "mismatch" : "found";
      if (char === "[" && this.#awaitsList) this.#awaitsList = false;
      else if (!/\s/.test(char)) return "mismatch";
    }
    this.#before = this.#text.length;
    return "partial";
  }

  #object(): CallProgress {
    const start = this.#seen;
    const end = start + this.#brackets.scan(this.#text.slice(start));
    this.#seen = end;
    const isOther = this.#brackets.broken || this.#keys?.scan(this.#text.slice(start, end)) === false;
    if (isOther) return { state: "refused", deltas: [], left: this.#text };
    if (this.#brackets.depth > 0) return { state: "reading", deltas: [], left: "" };
    const call = wholeCall(this.#text.slice(this.#before, end));
    const isCall = call !== null && (this.#keys === null || call.hasArguments);
    if (!isCall) return { state: "refused", deltas: [], left: this.#text };
    const { name, argumentsText } = call;
    return {
      state: "done",
      deltas: [{ kind: "tool_call", index: this.#index, name, argumentsText }],
      left: this.#text.slice(end),
    };
  }
}
