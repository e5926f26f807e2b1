// Follows the keys of a JSON object that arrives in pieces, and notices the first one that a tool call does not have.

const KEYS: ReadonlySet<string> = new Set(["name", "arguments", "parameters", "type", "id"]);

export class CallKeys {
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
