// Reads one call in the style of GLM 4.5, without its opening tag:
// NAME <arg_key>KEY</arg_key> <arg_value>VALUE</arg_value> … </tool_call>. A text is written as it is, any other value as
// JSON; the tool's schema tells which. The call comes out whole.

import type { ToolSignature } from "../../grammar/constraint.ts";
import { isJsonObject } from "../../json/json-object.ts";
import { stringEnd } from "../../json/json-string.ts";
import { Brackets } from "./brackets.ts";
import type { CallProgress, CallReader } from "./call-reader.ts";

const CLOSE = "</tool_call>";
const KEY = /\s*<arg_key>([^<]*)<\/arg_key>\s*<arg_value>/y;
const VALUE_END = /\s*<\/arg_value>\s*/y;
const NAME = /^\s*([\w.-]+)\s*/;

export class GlmCallReader implements CallReader {
  readonly committed = false;
  readonly #index: number;
  readonly #tools: readonly ToolSignature[];
  /** Forced calls have every value as JSON. */
  readonly #allJson: boolean;
  #text = "";
  #searched = 0;

  constructor(index: number, tools: readonly ToolSignature[], allJson: boolean) {
    this.#index = index;
    this.#tools = tools;
    this.#allJson = allJson;
  }

  get held(): string {
    return this.#text;
  }

  push(text: string): CallProgress {
    this.#text += text;
    for (;;) {
      const end = this.#text.indexOf(CLOSE, this.#searched);
      if (end < 0) {
        this.#searched = Math.max(this.#searched, this.#text.length - CLOSE.length + 1);
        return { state: "reading", deltas: [], left: "" };
      }
      const call = this.#call(this.#text.slice(0, end));
      if (call === null) return { state: "refused", deltas: [], left: this.#text };
      this.#searched = end + CLOSE.length;
      if (call !== "open") {
        const deltas = [{ kind: "tool_call" as const, index: this.#index, ...call }];
        return { state: "done", deltas, left: this.#text.slice(this.#searched) };
      }
    }
  }

  /** "open": the closing tag is inside a value. */
  #call(block: string): { name: string; argumentsText: string } | "open" | null {
    const head = NAME.exec(block);
    if (head === null) return null;
    const name = head[1]!;
    const members: string[] = [];
    let at = head[0].length;
    while (at < block.length) {
      KEY.lastIndex = at;
      const found = KEY.exec(block);
      if (found === null) return null;
      const key = found[1]!.trim();
      const start = KEY.lastIndex;
      const end = this.#allJson ? jsonEnd(block, start) : block.indexOf("</arg_value>", start);
      if (end < 0) return "open";
      VALUE_END.lastIndex = end;
      if (!VALUE_END.test(block)) return null;
      members.push(`${JSON.stringify(key)}: ${this.#value(name, key, block.slice(start, end))}`);
      at = VALUE_END.lastIndex;
    }
    return { name, argumentsText: `{${members.join(", ")}}` };
  }

  #value(name: string, key: string, written: string): string {
    const isText = !this.#allJson && this.#isText(name, key);
    return !isText && isJson(written) ? written.trim() : JSON.stringify(written);
  }

  #isText(name: string, key: string): boolean {
    const parameters = this.#tools.find((tool) => tool.name === name)?.parameters;
    const properties = isJsonObject(parameters) ? parameters.properties : null;
    const schema = isJsonObject(properties) && Object.hasOwn(properties, key) ? properties[key] : null;
    return isJsonObject(schema) && schema.type === "string";
  }
}

/** Position after the JSON value at `start`; -1 if it does not end. */
function jsonEnd(text: string, start: number): number {
  if (text[start] === '"') {
    const end = stringEnd(text, start) + 1;
    return end <= text.length ? end : -1;
  }
  if (text[start] !== "{" && text[start] !== "[") return text.indexOf("<", start);
  const brackets = new Brackets();
  const end = start + brackets.scan(text.slice(start));
  return brackets.depth === 0 ? end : -1;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false; // a text after all
  }
}
