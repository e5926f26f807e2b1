// Reads one call in the style of GLM 4.5, without its opening tag:
// NAME <arg_key>KEY</arg_key> <arg_value>VALUE</arg_value> … </tool_call>. A text is written as it is, any other value as
// JSON; the tool's schema tells which. Texts come out as they are written. Other values come out whole, because only their
// end shows whether they are JSON of a type that the schema allows.

import type { ToolSignature } from "../../grammar/constraint.ts";
import { isJson, isJsonObject, stringPiece } from "../../json/json.ts";
import { markerPrefix } from "../reasoning.ts";
import { Brackets, type CallProgress, type CallReader } from "./call-reader.ts";

// The types of JSON that a schema of an argument allows. A text without quotes is read by them: "10115" is a number or a text.

type JsonType = "string" | "number" | "boolean" | "object" | "array" | "null";

/** null: the schema does not say, or says it elsewhere. */
function schemaTypes(schema: unknown): ReadonlySet<JsonType> | null {
  if (!isJsonObject(schema)) return null;
  if (schema.type !== undefined) return new Set([schema.type].flat().map(typeNamed));
  if (Array.isArray(schema.enum)) return new Set(schema.enum.map(jsonType));
  const choices = schema.anyOf ?? schema.oneOf;
  if (!Array.isArray(choices)) return null;
  const types = new Set<JsonType>();
  for (const choice of choices) {
    const found = schemaTypes(choice);
    if (found === null) return null;
    for (const type of found) types.add(type);
  }
  return types;
}

function jsonType(value: unknown): JsonType {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : (typeof value as Exclude<JsonType, "null" | "array">);
}

function typeNamed(name: unknown): JsonType {
  return name === "integer" ? "number" : (name as JsonType);
}

const CLOSE = "</tool_call>";
const KEY = "<arg_key>";
const KEY_END = "</arg_key>";
const VALUE = "<arg_value>";
const VALUE_END = "</arg_value>";
const NAME = /^\s*([\w.-]+)\s*/;

/** What comes next. `text`, `json` and `any` are values: a string, JSON, and either of them. */
type Phase = "name" | "member" | "key" | "gap" | "text" | "json" | "any";

export class GlmCallReader implements CallReader {
  readonly #index: number;
  readonly #tools: readonly ToolSignature[];
  /** Calls that a grammar writes have every value as JSON. */
  readonly #allJson: boolean;
  #phase: Phase = "name";
  #name = "";
  #key = "";
  #members = 0;
  #committed = false;
  /** Read, but not given out. */
  #text = "";
  /** How much of it was understood. */
  #at = 0;
  #brackets = new Brackets();
  /** JSON of the arguments that this piece has brought. */
  #out = "";

  constructor(index: number, tools: readonly ToolSignature[], allJson: boolean) {
    this.#index = index;
    this.#tools = tools;
    this.#allJson = allJson;
  }

  get committed(): boolean {
    return this.#committed;
  }

  get held(): string {
    const isCutTag = this.#phase === "text" || this.#phase === "json" || CLOSE.startsWith(this.#text.trim());
    return this.#committed && isCutTag ? "" : this.#text;
  }

  push(text: string): CallProgress {
    this.#text += text;
    this.#out = "";
    const begun = this.#committed;
    let state: boolean | CallProgress["state"] = true;
    while (state === true) state = this.#step();
    const deltas: CallProgress["deltas"] = [];
    if (this.#committed && !begun) deltas.push({ kind: "tool_call", index: this.#index, name: this.#name });
    if (this.#out !== "") deltas.push({ kind: "tool_call", index: this.#index, argumentsText: this.#out });
    if (state === false) return { state: "reading", deltas, left: "" };
    return { state: state === "refused" && this.#committed ? "done" : state, deltas, left: this.#text };
  }

  /** true: go on; false: more text is needed. */
  #step(): boolean | CallProgress["state"] {
    switch (this.#phase) {
      case "name": {
        const found = NAME.exec(this.#text);
        if (found === null) return this.#text.trim() === "" ? false : "refused";
        if (found[0].length === this.#text.length) return false;
        this.#name = found[1]!;
        this.#at = found[0].length;
        this.#phase = "member";
        return true;
      }
      case "member":
        return this.#member();
      case "key": {
        const start = this.#at;
        const end = this.#text.indexOf("<", start);
        if (end < 0) return false;
        this.#key = this.#text.slice(start, end).trim();
        this.#at = end;
        const taken = this.#take(KEY_END, "gap");
        if (taken === false) this.#at = start;
        return taken;
      }
      case "gap": {
        const taken = this.#take(VALUE, this.#allJson ? "json" : this.#isText() ? "text" : "any");
        if (taken === true) this.#beginValue();
        return taken;
      }
      default:
        return this.#value();
    }
  }

  /** Another argument, or the end of the call. */
  #member(): boolean | CallProgress["state"] {
    const next = this.#take(KEY, "key");
    if (next !== "refused") return next;
    const end = this.#take(CLOSE, "member");
    if (end === false) return false;
    if (end === "refused" && !this.#committed) return "refused";
    // If the tag was forgotten, every argument is complete nevertheless.
    this.#give(this.#members === 0 ? "{}" : "}");
    return "done";
  }

  #beginValue(): void {
    this.#brackets = new Brackets();
    if (this.#phase !== "any") this.#give(this.#opening());
  }

  #value(): boolean {
    const { end, ended } = this.#valueEnd();
    if (this.#phase === "any") {
      if (!ended) return false;
      const written = this.#text.slice(this.#at, end);
      const value = this.#isJsonValue(written) ? written.trim() : `"${stringPiece(written)}"`;
      this.#at = end + VALUE_END.length;
      this.#give(this.#opening() + value);
    } else {
      const isText = this.#phase === "text";
      const written = this.#text.slice(this.#at, end);
      this.#at = ended ? end + VALUE_END.length : end;
      this.#give((isText ? stringPiece(written) : written) + (isText && ended ? '"' : ""));
      if (!ended) return false;
    }
    this.#members++;
    this.#phase = "member";
    return true;
  }

  /** How far the value is known to reach. Tags inside JSON strings are part of them. */
  #valueEnd(): { end: number; ended: boolean } {
    let from = this.#at;
    if (this.#phase === "json") {
      while (from < this.#text.length && !this.#brackets.broken) from += this.#brackets.scan(this.#text.slice(from));
      if (!this.#brackets.broken) return { end: from, ended: false };
    }
    const end = this.#text.indexOf(VALUE_END, from);
    if (end >= 0) return { end, ended: true };
    return { end: this.#text.length - markerPrefix(this.#text.slice(from), VALUE_END), ended: false };
  }

  /** The beginning of the argument's JSON. */
  #opening(): string {
    const quote = this.#phase === "text" ? '"' : "";
    return `${this.#members === 0 ? "{" : ", "}"${stringPiece(this.#key)}": ${quote}`;
  }

  /** Gives out JSON for everything understood so far. */
  #give(json: string): void {
    this.#committed = true;
    this.#out += json;
    this.#text = this.#text.slice(this.#at);
    this.#at = 0;
  }

  /** Takes a tag, after space. */
  #take(tag: string, next: Phase): boolean | "refused" {
    const rest = this.#text.slice(this.#at).trimStart();
    if (!rest.startsWith(tag)) return tag.startsWith(rest) ? false : "refused";
    this.#at = this.#text.length - rest.length + tag.length;
    this.#phase = next;
    return true;
  }

  #isText(): boolean {
    const types = this.#types();
    return types?.size === 1 && types.has("string");
  }

  /** JSON of a type that is not declared is a text, if texts are: "10115" where a text or null is expected. */
  #isJsonValue(written: string): boolean {
    if (!isJson(written)) return false;
    const types = this.#types();
    return types === null || !types.has("string") || types.has(jsonType(JSON.parse(written)));
  }

  /** Of the argument that is being read. */
  #types(): ReadonlySet<JsonType> | null {
    const parameters = this.#tools.find((tool) => tool.name === this.#name)?.parameters;
    const properties = isJsonObject(parameters) ? parameters.properties : null;
    return isJsonObject(properties) && Object.hasOwn(properties, this.#key) ? schemaTypes(properties[this.#key]) : null;
  }
}
