// Reads one call whose name stands before its arguments, a JSON object. The name comes out when the object begins, and the
// arguments follow as they are written.
import { Brackets, type CallProgress, type CallReader } from "./call-reader.ts";
import { ObjectCallReader } from "./object-call-reader.ts";

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

// Reads the first call behind Mistral's mark: of a JSON list, or a name and its arguments.

const HEADER = /^\s*([\w.-]+)\s*(?:\[CALL_ID\]\s*([\w-]+)\s*)?(?:\[ARGS\]\s*)?$/;

function readHeader(header: string): { name: string; id: string | undefined } | null {
  const found = HEADER.exec(header);
  return found && { name: found[1]!, id: found[2] };
}

export class MistralCallReader implements CallReader {
  readonly #index: number;
  /** Known from the first character on. */
  #reader: CallReader | null = null;
  #blank = "";

  constructor(index: number) {
    this.#index = index;
  }

  get committed(): boolean {
    return this.#reader?.committed ?? false;
  }

  get held(): string {
    return this.#reader?.held ?? this.#blank;
  }

  push(text: string): CallProgress {
    if (this.#reader !== null) return this.#reader.push(text);
    this.#blank += text;
    const first = this.#blank.trimStart()[0];
    if (first === undefined) return { state: "reading", deltas: [], left: "" };
    this.#reader =
      first === "["
        ? new ObjectCallReader(this.#index, { opensList: true })
        : new NamedCallReader(this.#index, readHeader);
    return this.#reader.push(this.#blank);
  }
}
