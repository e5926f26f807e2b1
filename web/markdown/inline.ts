// The text of a paragraph: emphasis, code, links and line breaks.
import { type ComponentChildren, h } from "preact";
import { bracketsOf, link, withoutEnd } from "./links.ts";

/** Addresses by the names that a text gives them: [sea]: https://… */
export type Targets = ReadonlyMap<string, string>;

const TARGET = /^ {0,3}\[([^\]]+)\]: *<?([^\s>]+)>?/;

export function targetsOf(lines: readonly string[]): Targets {
  const found = lines.map((line) => TARGET.exec(line)).filter((match) => match !== null);
  return new Map(found.map(([, name, target]) => [name!.toLowerCase(), target!]));
}

const PUNCTUATION = /[!-/:-@[-`{-~]/;
const PLAIN = /[^\\`![<hw&*_~\n]+/y;
/** Sticky, like the others: tried at one place only. */
const ADDRESS = /(?:https?:\/\/|www\.)[^\s<]+/y;
const ANGLE_ADDRESS = /<(https?:\/\/[^\s<>]+)>/y;
const ENTITY = /&(amp|lt|gt|quot|#39|nbsp);/y;
const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", nbsp: "\u00a0" };
/** Spaces before the target are taken all at once, so that a long run of them is not tried in every length. */
const DESTINATION =
  / *(?! )(?:<([^<>\n]*)>|([^\s()<]*(?:\([^\s()]*\)[^\s()]*)*))(?:\s+(?:"[^"]*"|'[^']*'|\([^()]*\)))?\s*\)/y;

/** Characters of a name that a text gives to an address. */
const LONGEST_NAME = 999;
/** Elements inside one another. Deeper marks stay as they are written. */
const DEEPEST = 16;

/** Marks that may begin emphasis further on. */
interface Opener {
  char: string;
  /** How many there were, and how many are left. */
  size: number;
  count: number;
  mayClose: boolean;
  /** Their place in the output. */
  at: number;
}

interface Piece {
  node: ComponentChildren;
  depth: number;
}

/** `isLink`: the text of a link, in which there are no others. */
export function inline(text: string, targets: Targets, isLink = false): ComponentChildren[] {
  const out: Piece[] = [];
  const openers: Opener[] = [];
  const unclosedTicks = new Set<number>();
  /** By kind of run: no opener below this index fits. */
  const searchedUpTo = new Map<string, number>();
  const brackets = isLink ? new Map<number, number>() : bracketsOf(text);
  const tried = (pattern: RegExp, from: number) => {
    pattern.lastIndex = from;
    return pattern.exec(text);
  };
  const add = (node: ComponentChildren, depth = 0) => {
    const last = out.at(-1);
    const isOpen = openers.at(-1)?.at === out.length - 1;
    if (typeof node === "string" && typeof last?.node === "string" && !isOpen) last.node += node;
    else out.push({ node, depth });
  };
  let at = 0;
  while (at < text.length) {
    const from = at;
    const char = text[at]!;
    const plain = tried(PLAIN, at);
    if (plain !== null) {
      add(plain[0]);
      at += plain[0].length;
    } else if (char === "\\" && (text[at + 1] === "\n" || PUNCTUATION.test(text[at + 1] ?? ""))) {
      add(text[at + 1] === "\n" ? h("br", {}) : text[at + 1]!);
      at += 2;
    } else if (char === "`") {
      const end = runEnd(text, at);
      const close = closingTicks(end, end - at);
      if (close < 0) add(text.slice(at, end));
      else add(h("code", {}, codeText(text.slice(end, close))));
      at = close < 0 ? end : close + end - at;
    } else if (char === "[" || (char === "!" && text[at + 1] === "[")) {
      const open = char === "!" ? at + 1 : at;
      const found = linkAt(open);
      if (found !== null) {
        const words = text.slice(open + 1, brackets.get(open)!);
        const raw = text.slice(at, found.end);
        add(link(found.target, char === "!" ? [`image: ${words}`] : inline(words, targets, true), raw));
        at = found.end;
      }
    } else if (char === "<" && !isLink) {
      const found = tried(ANGLE_ADDRESS, at);
      if (found !== null) {
        add(link(found[1]!, [found[1]!], found[0]));
        at += found[0].length;
      }
    } else if ((char === "h" || char === "w") && !isLink && !/\w/.test(text[at - 1] ?? "")) {
      const found = tried(ADDRESS, at);
      if (found !== null) {
        const address = withoutEnd(found[0]);
        add(link(char === "w" ? `http://${address}` : address, [address], address));
        at += address.length;
      }
    } else if (char === "&") {
      const found = tried(ENTITY, at);
      if (found !== null) {
        add(ENTITIES[found[1]!]!);
        at += found[0].length;
      }
    } else if (char === "*" || char === "_" || char === "~") {
      at = runEnd(text, at);
      emphasis(char, from, at);
    } else if (char === "\n") {
      const last = out.at(-1);
      const isBreak = typeof last?.node === "string" && last.node.endsWith("  ");
      add(isBreak ? h("br", {}) : "\n");
      at += 1;
    }
    if (at === from) {
      add(char);
      at += 1;
    }
  }
  return out.map(({ node }) => node);

  /** Of the bracket at `open`: [text](target "title"), [text][name] or [name]. */
  function linkAt(open: number): { target: string; end: number } | null {
    const close = brackets.get(open);
    if (close === undefined) return null;
    const found = text[close + 1] === "(" ? tried(DESTINATION, close + 2) : null;
    if (found !== null) return { target: found[1] ?? found[2]!, end: found.index + found[0].length };
    const nameEnd = text[close + 1] === "[" ? brackets.get(close + 1) : undefined;
    const isNamed = nameEnd !== undefined && nameEnd > close + 2;
    const [from, to] = isNamed ? [close + 2, nameEnd] : [open + 1, close];
    const target = to - from > LONGEST_NAME ? undefined : targets.get(text.slice(from, to).toLowerCase());
    return target === undefined ? null : { target, end: (nameEnd ?? close) + 1 };
  }

  /** Where the next run of `size` backticks begins; −1 if there is none. */
  function closingTicks(from: number, size: number): number {
    if (unclosedTicks.has(size)) return -1;
    for (let start = text.indexOf("`", from); start >= 0; ) {
      const end = runEnd(text, start);
      if (end - start === size) return start;
      start = text.indexOf("`", end);
    }
    unclosedTicks.add(size);
    return -1;
  }

  /** The nearest marks that a run can close; −1 if there are none. */
  function openerFor(char: string, size: number, mayOpen: boolean): number {
    const kind = `${char}${size % 3}${mayOpen}`;
    // What was searched in vain is not searched again.
    const searched = Math.min(searchedUpTo.get(kind) ?? 0, openers.length);
    for (let i = openers.length - 1; i >= searched; i--) {
      const one = openers[i]!;
      // *a**b* is one emphasis: marks that might do both do not end what would leave a rest.
      const leavesRest = (mayOpen || one.mayClose) && (one.size + size) % 3 === 0 && size % 3 !== 0;
      if (one.char === char && !leavesRest) return i;
    }
    searchedUpTo.set(kind, openers.length);
    return -1;
  }

  /** A run of marks closes what it can, and what is left of it may open. */
  function emphasis(char: string, from: number, end: number): void {
    const [before, after] = [text[from - 1] ?? " ", text[end] ?? " "];
    const opens = !isSpace(after) && (!isMark(after) || isSpace(before) || isMark(before));
    const closes = !isSpace(before) && (!isMark(before) || isSpace(after) || isMark(after));
    const mayOpen = opens && (char !== "_" || !closes || isMark(before));
    const mayClose = closes && (char !== "_" || !opens || isMark(after));
    const size = end - from;
    let count = size;
    while (mayClose && count > 0 && (char !== "~" || size === 2)) {
      const index = openerFor(char, size, mayOpen);
      if (index < 0) break;
      const opener = openers[index]!;
      const inside = out.slice(opener.at + 1);
      const depth = 1 + inside.reduce((most, piece) => Math.max(most, piece.depth), 0);
      if (depth > DEEPEST) {
        openers.length = 0;
        break;
      }
      const used = Math.min(2, count, opener.count);
      opener.count -= used;
      count -= used;
      out.length = opener.at + 1;
      out[opener.at]!.node = char.repeat(opener.count);
      const children = inside.map(({ node }) => node);
      out.push({ node: h(char === "~" ? "del" : used === 2 ? "strong" : "em", {}, children), depth });
      openers.length = opener.count === 0 ? index : index + 1;
    }
    if (count === 0) return;
    const isOpener = mayOpen && (char !== "~" || count === 2);
    if (isOpener) openers.push({ char, size, count, mayClose, at: out.length });
    if (isOpener) out.push({ node: char.repeat(count), depth: 0 });
    else add(char.repeat(count));
  }
}

/** Behind the run of equal characters that begins at `from`. */
function runEnd(text: string, from: number): number {
  let end = from + 1;
  while (text[end] === text[from]) end += 1;
  return end;
}

/** Line breaks become spaces. One space at both ends keeps backticks apart and is no part of the code. */
function codeText(raw: string): string {
  const text = raw.replaceAll("\n", " ");
  return text.startsWith(" ") && text.endsWith(" ") && text.trim() !== "" ? text.slice(1, -1) : text;
}

function isSpace(char: string): boolean {
  return char.trim() === "";
}

function isMark(char: string): boolean {
  return /[\p{P}\p{S}]/u.test(char);
}
