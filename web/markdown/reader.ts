// Reads an answer that grows. What can change no more is read once: of a long answer, a new token costs its last blocks.
import type { Token } from "marked";
import type { JSX } from "preact";
import { blockOf } from "./elements.ts";
import { tokensOf } from "./lexer.ts";
import { Outline } from "./outline.ts";

/** Characters that are read in one go, beside the blocks that were still open. */
const SLICE = 20_000;
/** While an answer grows, reading may take this share of the time. */
const SHARE = 0.1;
/** Blocks that the next line may still change. */
const OPEN_BLOCKS = 2;
/** A longer text is not read again for names of links that it gives at its end. */
const LONGEST_AGAIN = 200_000;

type Block = JSX.Element | null;

export class Reader {
  /** In how many milliseconds there is more to read; null: all is read. */
  wait: number | null = null;
  #text = "";
  /** Where the open blocks begin, and how far the text was read. */
  #closedTo = 0;
  #readTo = 0;
  #closed: Block[] = [];
  #open: Block[] = [];
  /** Of the closed blocks. */
  #outline = new Outline();
  /** All of a text that grows no more was read. */
  #isDone = false;
  /** Links have names: [sea]: https://… */
  #hasNames = false;
  #restUntil = 0;
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** The elements of a text. `isGrowing`: more of it will come. */
  read(text: string, isGrowing: boolean): Block[] {
    if (!text.startsWith(this.#text)) this.#forget();
    if (text.length > this.#text.length) this.#isDone = false;
    this.#text = text;
    const begin = this.#now();
    const isResting = isGrowing && begin < this.#restUntil;
    if (!isResting && !this.#isDone && (!isGrowing || this.#readTo < text.length)) {
      this.#readOn(isGrowing);
      this.#restUntil = begin + (this.#now() - begin) / SHARE;
    }
    this.wait = this.#readTo === text.length ? null : isResting ? this.#restUntil - begin : 0;
    return [...this.#closed, ...this.#open];
  }

  #readOn(isGrowing: boolean): void {
    this.#readTo = Math.min(this.#text.length, this.#readTo + SLICE);
    this.#isDone = !isGrowing && this.#readTo === this.#text.length;
    let tokens = tokensOf(this.#text.slice(this.#closedTo, this.#readTo));
    this.#hasNames ||= tokens.some(({ type }) => type === "def");
    if (this.#isDone && this.#hasNames && this.#closedTo > 0 && this.#text.length <= LONGEST_AGAIN) {
      [this.#closed, this.#closedTo, this.#outline] = [[], 0, new Outline()];
      tokens = tokensOf(this.#text);
    }
    const closing = this.#isDone ? tokens.length : this.#closing(tokens);
    this.#closed.push(...tokens.slice(0, closing).map((token) => blockOf(token, false, this.#outline)));
    const rest = tokens.slice(closing);
    const outline = this.#outline.copy();
    this.#open = rest.map((token, i) => blockOf(token, i === rest.length - 1, outline));
  }

  /** How many of the tokens the next line cannot change. Moves to the first that it can. */
  #closing(tokens: readonly Token[]): number {
    let open = OPEN_BLOCKS;
    let most = tokens.length;
    while (most > 0 && open > 0) {
      most -= 1;
      if (tokens[most]!.type !== "space") open -= 1;
    }
    let closing = 0;
    for (const { raw } of tokens.slice(0, most)) {
      if (!this.#text.startsWith(raw, this.#closedTo)) break; // it was changed as it was read: nobody knows where it ends
      this.#closedTo += raw.length;
      closing += 1;
    }
    return closing;
  }

  #forget(): void {
    [this.#text, this.#closedTo, this.#readTo, this.#restUntil] = ["", 0, 0, 0];
    [this.#closed, this.#open, this.#outline] = [[], [], new Outline()];
    [this.#isDone, this.#hasNames] = [false, false];
  }
}
