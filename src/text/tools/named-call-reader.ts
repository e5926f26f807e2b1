// Reads one call whose name stands before its arguments, a JSON object. The name comes out when the object begins, and the
// arguments follow as they are written.

import { Brackets } from "./brackets.ts";
import type { CallProgress, CallReader } from "./call-reader.ts";

/** Reads everything before the arguments. `id` is the model's own id of the call. null: not a call. */
export type ReadHeader = (header: string) => { name: string; id?: string | undefined } | null;

/** A longer text before the arguments is not the header of a call. */
const LONGEST_HEADER = 1024;

export class NamedCallReader implements CallReader {
  readonly #index: number;
  readonly #readHeader: ReadHeader;
  #header = "";
  #committed = false;
  readonly #brackets = new Brackets();

  constructor(index: number, readHeader: ReadHeader) {
    this.#index = index;
    this.#readHeader = readHeader;
  }

  get committed(): boolean {
    return this.#committed;
  }

  get held(): string {
    return this.#committed ? "" : this.#header;
  }

  push(text: string): CallProgress {
    const deltas: CallProgress["deltas"] = [];
    let rest = text;
    if (!this.#committed) {
      this.#header += text;
      const brace = this.#header.slice(0, LONGEST_HEADER).indexOf("{");
      if (brace < 0 && this.#header.length < LONGEST_HEADER) return { state: "reading", deltas, left: "" };
      const found = brace < 0 ? null : this.#readHeader(this.#header.slice(0, brace));
      if (found === null) return { state: "refused", deltas, left: this.#header };
      const { name, id } = found;
      deltas.push({ kind: "tool_call", index: this.#index, name, ...(id === undefined ? {} : { id }) });
      rest = this.#header.slice(brace);
      this.#committed = true;
    }
    const end = this.#brackets.scan(rest);
    const fragment = rest.slice(0, end);
    if (fragment !== "") deltas.push({ kind: "tool_call", index: this.#index, argumentsText: fragment });
    return this.#brackets.depth > 0 && !this.#brackets.broken
      ? { state: "reading", deltas, left: "" }
      : { state: "done", deltas, left: rest.slice(end) };
  }
}
