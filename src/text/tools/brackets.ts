// Follows the brackets of a JSON value that arrives in pieces.

export class Brackets {
  /** How many are open. */
  depth = 0;
  /** A tag began where only JSON can stand. What follows does not belong to the value. */
  broken = false;
  #inString = false;
  #escaped = false;

  /** Position after the bracket that closes the last open one, or of a tag outside of strings, else the end of the text. */
  scan(text: string): number {
    for (let i = 0; i < text.length; i++) {
      const char = text[i]!;
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (char === "\\") this.#escaped = true;
        else if (char === '"') this.#inString = false;
      } else if (char === '"') this.#inString = true;
      else if (char === "{" || char === "[") this.depth++;
      else if (char === "}" || char === "]") {
        this.depth--;
        if (this.depth === 0) return i + 1;
      } else if (char === "<") {
        this.broken = true;
        return i;
      }
    }
    return text.length;
  }
}
