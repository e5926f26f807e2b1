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

export class LiteralText {
  /** Matches the first character of a spelling; null: there is none. */
  readonly #begins: RegExp | null;
  readonly #longest: number;

  /** Special tokens are control tokens, and so are the others that the template writes, such as `<tool_call>`. */
  constructor(added: readonly AddedTokenSpelling[], template: string) {
    const control = added
      .filter(({ content, special }) => /\S/.test(content) && (special || template.includes(content)))
      .map(({ content }) => content);
    const escaped = control.map((content) => content.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
    this.#begins = control.length === 0 ? null : new RegExp(`(?=${escaped.join("|")})[^]`, "gu");
    this.#longest = Math.max(0, ...control.map(({ length }) => length));
  }

  /** The value with every spelling in its texts broken, those in the names of fields too. */
  broken<T>(value: T): T {
    return this.#broken(value) as T;
  }

  /** Templates may write the parts of a content one behind the other, so a spelling may begin in one and end in the next. */
  message(message: ChatMessage): ChatMessage {
    const texts: string[] = [];
    let before = "";
    for (const text of message.texts) {
      const own = this.#text(text);
      const isCut = this.#text(before + text) !== this.#text(before) + own;
      texts.push(isCut ? MARK + own : own);
      before = (before + text).slice(-this.#longest);
    }
    return { ...this.broken({ ...message, texts: [] }), texts };
  }

  #broken(value: unknown): unknown {
    if (typeof value === "string") return this.#text(value);
    if (Array.isArray(value)) return value.map((item) => this.#broken(item));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [this.#text(name), this.#broken(item)]));
  }

  #text(text: string): string {
    const plain = withoutMarks(text);
    return this.#begins === null ? plain : plain.replace(this.#begins, `$&${MARK}`);
  }
}
