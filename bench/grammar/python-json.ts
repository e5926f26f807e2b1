// JSON text with the layout, numbers and order of Python's json.dumps(value, ensure_ascii=False), which the published
// results of MaskBench are made with. Works on the text itself: JavaScript's objects would reorder keys like "10" and
// write 1.0 as 1.

import { stringEnd } from "../../src/json/json.ts";

export interface JsonNode {
  /** As Python writes it. */
  readonly text: string;
  readonly members: ReadonlyMap<string, JsonNode>;
  readonly items: readonly JsonNode[];
}

const NO_MEMBERS: ReadonlyMap<string, JsonNode> = new Map();

/** The text must be valid JSON. */
export function readPythonJson(source: string): JsonNode {
  return new Reader(source).value();
}

class Reader {
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  value(): JsonNode {
    const first = this.#peek();
    if (first === "{") return this.#object();
    if (first === "[") return this.#array();
    return { text: first === '"' ? this.#string() : this.#plain(), members: NO_MEMBERS, items: [] };
  }

  #object(): JsonNode {
    const members = new Map<string, JsonNode>();
    this.#at++;
    while (this.#peek() !== "}") {
      if (this.#peek() === ",") this.#at++;
      this.#peek();
      const key = this.#string();
      this.#peek();
      this.#at++;
      members.set(JSON.parse(key) as string, this.value());
    }
    this.#at++;
    const text = [...members].map(([key, { text }]) => `${JSON.stringify(key)}: ${text}`).join(", ");
    return { text: `{${text}}`, members, items: [] };
  }

  #array(): JsonNode {
    const items: JsonNode[] = [];
    this.#at++;
    while (this.#peek() !== "]") {
      if (this.#peek() === ",") this.#at++;
      items.push(this.value());
    }
    this.#at++;
    return { text: `[${items.map(({ text }) => text).join(", ")}]`, members: NO_MEMBERS, items };
  }

  #string(): string {
    const end = stringEnd(this.#source, this.#at) + 1;
    const text = JSON.stringify(JSON.parse(this.#source.slice(this.#at, end)));
    this.#at = end;
    return text;
  }

  #plain(): string {
    const text = /[^\s,\]}]+/y;
    text.lastIndex = this.#at;
    const [found] = text.exec(this.#source)!;
    this.#at += found.length;
    return /^-?\d+[.eE]/.test(found) ? pythonFloat(Number(found)) : found;
  }

  /** Skips whitespace. */
  #peek(): string {
    while (" \t\r\n".includes(this.#source[this.#at]!)) this.#at++;
    return this.#source[this.#at]!;
  }
}

/** repr(float): an exponent below 1e-4 and from 1e16 on, else at least one decimal. */
function pythonFloat(value: number): string {
  const size = Math.abs(value);
  if (value !== 0 && (size < 1e-4 || size >= 1e16)) {
    const [digits, exponent] = value.toExponential().split("e") as [string, string];
    return `${digits}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
  }
  const text = Object.is(value, -0) ? "-0" : String(value);
  return text.includes(".") ? text : `${text}.0`;
}
