// Keeps control tokens that clients spell in messages from becoming control tokens (--literal-control-tokens). Before a template
// runs, every such spelling in the client's texts is broken by a mark. The tokenizer takes the marks out again after it has looked
// for control tokens, so the text gets the ids of a text, and the template's own control tokens stay what they are.

import type { ChatMessage } from "./messages.ts";
import type { AddedTokenSpelling } from "./tokenizer-contract.ts";

/** Nobody writes these three characters in a row, and neither templates nor normalisers change them. */
const MARK = "\u2419\u2404\u2419";

export function withoutMarks(text: string): string {
  return text.replaceAll(MARK, "");
}

/** Characters between two pauses: about a millisecond. */
const CHARACTERS_PER_STEP = 16_384;
const MARKS_PER_STEP = 4096;

type Steps<T> = Generator<undefined, T>;

export class LiteralText {
  /** Finds where spellings begin; null: there are none. */
  readonly #begins: RegExp | null;
  readonly #longest: number;
  /** Characters since the last pause. */
  #done = 0;

  /**
   * Special tokens are control tokens, and so are the others that the template writes, such as `<tool_call>`. `template`: null for one
   * that nobody has read, which may write any of them.
   */
  constructor(added: readonly AddedTokenSpelling[], template: string | null) {
    const control = added
      .filter(({ content, special }) => /\S/.test(content) && (special || (template?.includes(content) ?? true)))
      .map(({ content }) => content);
    const escaped = control.map((content) => content.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
    this.#begins = control.length === 0 ? null : new RegExp(`(?=${escaped.join("|")})`, "g");
    this.#longest = Math.max(1, ...control.map(({ length }) => length));
  }

  /** The value with every spelling in its texts broken, those in the names of fields too. Pauses. */
  *broken<T>(value: T): Steps<T> {
    return (yield* this.#broken(value)) as T;
  }

  /** Templates may write the parts of a content one behind the other, so a spelling may begin in one and end in the next. */
  *message(message: ChatMessage): Steps<ChatMessage> {
    const texts = yield* this.#texts(message.texts);
    const others = yield* this.broken({ ...message, texts: [] });
    return { ...others, texts };
  }

  *#broken(value: unknown): Steps<unknown> {
    if (typeof value === "string") return (yield* this.#texts([value]))[0];
    if (Array.isArray(value)) {
      const items: unknown[] = [];
      for (const item of value) items.push(yield* this.#broken(item));
      return items;
    }
    if (typeof value !== "object" || value === null) return value;
    const entries: [unknown, unknown][] = [];
    for (const [name, item] of Object.entries(value)) {
      entries.push([yield* this.#broken(name), yield* this.#broken(item)]);
    }
    return Object.fromEntries(entries);
  }

  /** Texts that may stand one behind the other. */
  *#texts(given: readonly string[]): Steps<string[]> {
    const texts = given.map(withoutMarks);
    const joined = texts.join("");
    const places = yield* this.#places(joined);
    const broken: string[] = [];
    let start = 0;
    let next = 0;
    for (const { length } of texts) {
      const end = start + length;
      const parts: string[] = [];
      let pieces: string[] = [];
      for (; next < places.length && places[next]! <= end; next++) {
        pieces.push(joined.slice(start, places[next]), MARK);
        start = places[next]!;
        if (next % MARKS_PER_STEP !== 0) continue;
        parts.push(pieces.join(""));
        pieces = [];
        yield;
      }
      broken.push(parts.join("") + pieces.join("") + joined.slice(start, end));
      start = end;
    }
    return broken;
  }

  /** Where the marks go: behind the first characters of all spellings. */
  *#places(text: string): Steps<number[]> {
    const places: number[] = [];
    for (let at = 0; this.#begins !== null && at < text.length; at += CHARACTERS_PER_STEP) {
      const piece = text.slice(at, at + CHARACTERS_PER_STEP + this.#longest);
      this.#begins.lastIndex = 0;
      for (let found = this.#begins.exec(piece); found !== null; found = this.#begins.exec(piece)) {
        if (found.index >= CHARACTERS_PER_STEP) break;
        places.push(at + found.index + (piece.codePointAt(found.index)! > 0xffff ? 2 : 1));
        this.#begins.lastIndex = found.index + 1;
      }
      this.#done += Math.min(piece.length, CHARACTERS_PER_STEP) + 64;
      if (this.#done < CHARACTERS_PER_STEP) continue;
      yield;
      this.#done = 0;
    }
    return places;
  }
}
