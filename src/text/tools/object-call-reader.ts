// Reads one call that is a JSON object, {"name": …, "arguments": {…}}, alone or in a list. The first reader of a list reads
// its opening bracket too. Calls with their keys in another order, or with arguments as text, come out whole. Without a mark in front, only
// an object with a name and arguments, and no keys that calls do not have, is a call: answers may be JSON too.
import { parseExactJson, writeExactJson } from "../../json/exact-json.ts";
import { isJsonObject } from "../../json/json.ts";
import { Brackets, type CallProgress, type CallReader } from "./call-reader.ts";
import { JsonCallReader } from "./json-call-reader.ts";

// Follows the keys of a JSON object that arrives in pieces, and notices the first one that a tool call does not have.

const KEYS: ReadonlySet<string> = new Set(["name", "arguments", "parameters", "type", "id"]);

class CallKeys {
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** The next string of the object itself is a key. */
  #awaitsKey = false;
  /** The key that is being read; null = none is. */
  #key: string | null = null;

  /** false: the object is no call. */
  scan(text: string): boolean {
    for (const char of text) {
      if (this.#inString) {
        if (!this.#string(char)) return false;
      } else if (char === '"') {
        this.#inString = true;
        this.#key = this.#awaitsKey ? "" : null;
      } else if (char === "{" || char === "[") this.#awaitsKey = ++this.#depth === 1;
      else if (char === "}" || char === "]") this.#depth--;
      else if (char === ",") this.#awaitsKey = this.#depth === 1;
    }
    return true;
  }

  #string(char: string): boolean {
    if (!this.#escaped && char === '"') {
      this.#inString = false;
      this.#awaitsKey = false;
      return this.#key === null || KEYS.has(this.#key);
    }
    this.#escaped = !this.#escaped && char === "\\";
    if (this.#key !== null) this.#key += char;
    return true;
  }
}

// Reads a call that is there as a whole, with its keys in any order and its arguments as an object or as JSON text.

type Call = { name?: unknown; arguments?: unknown; parameters?: unknown };

/** null: the text is not a call. */
function wholeCall(block: string): { name: string; argumentsText: string; hasArguments: boolean } | null {
  const argumentsOf = (call: Call): unknown => call.arguments ?? call.parameters ?? {};
  try {
    const call = JSON.parse(block) as Call;
    const given = argumentsOf(call);
    const value: unknown = typeof given === "string" ? JSON.parse(given) : given;
    if (typeof call.name !== "string" || call.name === "" || !isJsonObject(value)) return null;
    // Numbers as the model wrote them.
    const argumentsText =
      typeof given === "string" ? given : writeExactJson(argumentsOf(parseExactJson(block) as Call));
    return { name: call.name, argumentsText, hasArguments: "arguments" in call || "parameters" in call };
  } catch {
    return null; // no JSON
  }
}

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
