// A cursor over the source text of a constraint. It moves by whole characters, so a surrogate pair is one step.
// Positions count UTF-16 units.

export class SourceReader {
  readonly source: string;
  position = 0;

  constructor(source: string) {
    this.source = source;
  }

  get done(): boolean {
    return this.position >= this.source.length;
  }

  get rest(): string {
    return this.source.slice(this.position);
  }

  at(text: string): boolean {
    return this.source.startsWith(text, this.position);
  }

  /** The next character without consuming it; "" at the end. */
  peek(): string {
    return this.done ? "" : String.fromCodePoint(this.source.codePointAt(this.position)!);
  }

  next(): string {
    const char = this.peek();
    this.position += char.length;
    return char;
  }

  take(text: string): boolean {
    if (!this.at(text)) return false;
    this.position += text.length;
    return true;
  }

  /** Consumes up to `count` UTF-16 units. */
  takeUnits(count: number): string {
    const taken = this.source.slice(this.position, this.position + count);
    this.position += taken.length;
    return taken;
  }

  /** Consumes through `end` and returns the text before it. Without an `end` it consumes nothing and returns null. */
  until(end: string): string | null {
    const found = this.source.indexOf(end, this.position);
    if (found < 0) return null;
    const text = this.source.slice(this.position, found);
    this.position = found + end.length;
    return text;
  }

  /** Consumes what a sticky regular expression matches here; null = no match. */
  match(sticky: RegExp): RegExpExecArray | null {
    sticky.lastIndex = this.position;
    const found = sticky.exec(this.source);
    if (found) this.position += found[0].length;
    return found;
  }
}
