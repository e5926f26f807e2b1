// Reads the first call behind Mistral's mark: of a JSON list, or a name and its arguments.

import type { CallProgress, CallReader } from "./call-reader.ts";
import { NamedCallReader } from "./named-call-reader.ts";
import { ObjectCallReader } from "./object-call-reader.ts";

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
