// Reads one call that is a JSON object, {"name": …, "arguments": {…}}, alone or in a list. The first reader of a list reads
// its opening bracket too. Calls with their keys in another order, or with arguments as text, come out whole.

import { Brackets } from "./brackets.ts";
import type { CallProgress, CallReader } from "./call-reader.ts";
import { JsonCallReader } from "./json-call-reader.ts";
import { wholeCall } from "./whole-call.ts";

export class ObjectCallReader implements CallReader {
  readonly #index: number;
  readonly #call: JsonCallReader;
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

  constructor(index: number, opensList: boolean) {
    this.#index = index;
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
    const end = this.#seen + this.#brackets.scan(this.#text.slice(this.#seen));
    this.#seen = end;
    if (this.#brackets.broken) return { state: "refused", deltas: [], left: this.#text };
    if (this.#brackets.depth > 0) return { state: "reading", deltas: [], left: "" };
    const call = wholeCall(this.#text.slice(this.#before, end));
    if (call === null) return { state: "refused", deltas: [], left: this.#text };
    const { name, argumentsText } = call;
    return {
      state: "done",
      deltas: [{ kind: "tool_call", index: this.#index, name, argumentsText }],
      left: this.#text.slice(end),
    };
  }
}
