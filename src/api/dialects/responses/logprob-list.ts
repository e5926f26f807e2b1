// The log-probabilities of a text, as JSON that is written as they arrive. A response shows them several times: in events, in
// what is kept, and as a whole. Writing hundreds of thousands of objects each time would hold up everybody.
import { randomBytes } from "node:crypto";
import { writeExactJson } from "../../../json/exact-json.ts";
import type { WireTokenLogprob } from "../../generation/reply.ts";

/** Key of the object that stands for a list. Clients' own objects are in responses too, so they must not guess it. */
const KEY = randomBytes(16).toString("hex");
const PLACE = new RegExp(String.raw`\{"${KEY}":(\d+)\}`);

export class LogprobList {
  readonly #number: number;
  /** JSON of entries, with commas. */
  #parts: string[] = [];
  #length = 0;

  /** `number`: its own among the lists of a response. */
  constructor(number: number) {
    this.#number = number;
  }

  get length(): number {
    return this.#length;
  }

  add(entries: readonly WireTokenLogprob[]): void {
    if (entries.length === 0) return;
    const json = JSON.stringify(entries).slice(1, -1);
    this.#parts.push(this.#length === 0 ? json : `,${json}`);
    this.#length += entries.length;
  }

  get json(): string {
    if (this.#parts.length > 1) this.#parts = [this.#parts.join("")];
    return `[${this.#parts[0] ?? ""}]`;
  }

  toJSON(): Record<string, number> {
    return { [KEY]: this.#number };
  }
}

/** JSON of a value with lists inside. Its parts are joined with `+`, which copies nothing. */
export function writeWithLists(value: unknown, lists: readonly LogprobList[]): string {
  const pieces = writeExactJson(value).split(PLACE);
  return pieces.reduce((text, piece, i) => text + (i % 2 === 0 ? piece : lists[Number(piece)]!.json), "");
}
