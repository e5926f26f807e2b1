// marked's lexer, with what an answer needs beyond GitHub's Markdown: mathematics and footnotes. It makes tokens, never HTML.
// An answer may be anything, so what would take long or nest deeply stays the text that it is, and nothing disappears: HTML is
// text, and "[INFO]: started" is a sentence, not the definition of a link.
import { Lexer, type Token, Tokenizer, type Tokens } from "marked";
import { webAddress } from "./links.ts";

/** Characters of one paragraph, cell or heading. A longer one has no marks inside. */
const LONGEST_INLINE = 20_000;
/** Lists and quotes inside one another, and emphasis inside emphasis. What is deeper is text. */
const DEEPEST = 12;
/** Characters that all marks of a text may look through for their ends: about a tenth of a second. */
const MOST_LOOKED_THROUGH = 5_000_000;
const LONGEST_MATH = 4_000;
const LONGEST_HEADING = 2_000;

/** The blocks of a text. Beside marked's own there are "math" (`text`, `isDisplay`), "footnote" and "footnoteMark" (`label`). */
export function tokensOf(text: string): Token[] {
  return new AnswerLexer().lex(text);
}

class AnswerLexer extends Lexer {
  #depth = 0;

  constructor() {
    super({
      gfm: true,
      tokenizer: new AnswerTokenizer(),
      extensions: {
        block: [footnote, displayMath],
        inline: [footnoteMark, inlineMath],
        startBlock: [displayMathIn],
        startInline: [(text) => text.indexOf("$")],
        renderers: {},
        childTokens: {},
      },
    });
  }

  override blockTokens<List extends Token[]>(text: string, tokens = [] as unknown as List, isClipped?: boolean): List {
    if (this.#depth >= DEEPEST) tokens.push({ type: "text", raw: text, text } satisfies Tokens.Text);
    else this.#deeper(() => super.blockTokens(text, tokens, isClipped));
    return tokens;
  }

  override inlineTokens(text: string, tokens: Token[] = []): Token[] {
    const isText = this.#depth >= DEEPEST || text.length > LONGEST_INLINE;
    if (isText) tokens.push({ type: "text", raw: text, text } satisfies Tokens.Text);
    else this.#deeper(() => super.inlineTokens(text, tokens));
    return tokens;
  }

  #deeper(read: () => void): void {
    this.#depth += 1;
    try {
      read();
    } finally {
      this.#depth -= 1;
    }
  }
}

class AnswerTokenizer extends Tokenizer {
  #left = MOST_LOOKED_THROUGH;

  override html(): undefined {}

  override def(text: string): Tokens.Def | undefined {
    const found = super.def(text);
    return found === undefined || webAddress(found.href) === null ? undefined : found;
  }

  /** Short rows are filled, so a wide head over many of them would become more cells than there are characters. */
  override table(text: string): Tokens.Table | undefined {
    const found = this.rules.block.table.exec(text)?.[0];
    if (found === undefined) return undefined;
    const [head] = found.split("\n", 1);
    const cells = head!.split("|").length * found.split("\n").length;
    return cells > 2 * found.length + 100 ? undefined : super.table(text);
  }

  /** A heading above its underline is looked for near by, not to the end of every paragraph. */
  override lheading(text: string): Tokens.Heading | undefined {
    return super.lheading(
      text.length > LONGEST_HEADING ? text.slice(0, text.lastIndexOf("\n", LONGEST_HEADING) + 1) : text,
    );
  }

  override emStrong(text: string, masked: string, before?: string): Tokens.Em | Tokens.Strong | undefined {
    if (text[0] !== "*" && text[0] !== "_") return undefined;
    return this.#mayLook(text) ? super.emStrong(text, masked, before) : undefined;
  }

  override del(text: string, masked: string, before?: string): Tokens.Del | undefined {
    return text[0] === "~" && this.#mayLook(text) ? super.del(text, masked, before) : undefined;
  }

  override link(text: string): Tokens.Link | Tokens.Image | undefined {
    if (text[0] !== "[" && text[0] !== "!") return undefined;
    return this.#mayLook(text) ? super.link(text) : undefined;
  }

  #mayLook(text: string): boolean {
    this.#left -= text.length;
    return this.#left >= 0;
  }
}

/** Where display mathematics ends a paragraph. What only looks like it is tried a few times. */
function displayMathIn(text: string): number | undefined {
  const marks = /\n {0,3}(?:\$\$|\\\[)/g;
  for (let tries = 0; tries < 8; tries++) {
    const found = marks.exec(text);
    if (found === null) return undefined;
    if (displayMath(text.slice(found.index + 1)) !== undefined) return found.index;
  }
  return undefined;
}

type Extension = (text: string) => Tokens.Generic | undefined;

/** [^1]: a line, and the lines below it. */
function footnote(this: { lexer: Lexer }, text: string): Tokens.Generic | undefined {
  const found = /^ {0,3}\[\^([^\]\s]{1,99})\]:[ \t]*([^\n]*(?:\n(?![ \t]*\n| {0,3}\[\^)[^\n]+)*)(?:\n+|$)/.exec(text);
  if (found === null) return undefined;
  const [raw, label, words] = found;
  return { type: "footnote", raw, label, tokens: this.lexer.inline(words!) };
}

/** [^1] in a sentence. A name may be meant as it is written: [^a-z]. */
const footnoteMark: Extension = (text) => {
  const found = text.startsWith("[^") ? /^\[\^(\d{1,3})\](?!:)/.exec(text) : null;
  return found === null ? undefined : { type: "footnoteMark", raw: found[0], label: found[1]! };
};

/** Between $$ and $$ or \[ and \], on lines of their own. One that has no end yet may get it. */
const displayMath: Extension = (text) => {
  const found = /^ {0,3}(\$\$|\\\[)/.exec(text);
  if (found === null) return undefined;
  const from = found[0].length;
  const near = text.slice(from, from + LONGEST_MATH);
  const gap = /\n[ \t]*\n/.exec(near)?.index ?? near.length;
  const end = near.slice(0, gap).indexOf(found[1] === "$$" ? "$$" : "\\]");
  const isEndless = end < 0 && gap === near.length && from + gap === text.length && near.startsWith("\n");
  const behind = end < 0 ? null : /^[ \t]*(?:\n+|$)/.exec(text.slice(from + end + 2));
  if (!isEndless && behind === null) return undefined;
  const raw = isEndless ? text : text.slice(0, from + end + 2 + behind![0].length);
  const tex = (isEndless ? near : near.slice(0, end)).trim();
  return tex === "" ? undefined : { type: "math", raw, text: tex, isDisplay: true };
};

/** Dollars of a sentence are money: "$5 and $10", "5$". */
const inlineMath: Extension = (text) => {
  if (text[0] !== "$" && text[0] !== "\\") return undefined;
  const near = text.slice(0, LONGEST_MATH);
  const found =
    /^\$\$([^$]+)\$\$/.exec(near) ??
    /^\\\[([\s\S]+?)\\\]/.exec(near) ??
    /^\\\(([\s\S]+?)\\\)/.exec(near) ??
    /^\$(?![\s$])((?:\\[\s\S]|[^\\$])*?(?:\\[\s\S]|[^\\$\s]))\$(?![\d$])/.exec(near);
  if (found === null) return undefined;
  const isDisplay = found[0].startsWith("$$") || found[0].startsWith("\\[");
  return { type: "math", raw: found[0], text: found[1]!.trim(), isDisplay };
};
