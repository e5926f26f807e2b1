// Markdown as elements: what models write, as GitHub reads it. No HTML string exists at any time, so nothing in a reply can
// become code. HTML in a reply is shown as text, images become links, and links lead to http and https only and say where.
// Every step takes time linear in the text, whatever it is.
import { type ComponentChildren, h, type JSX } from "preact";
import { TableScroll } from "../parts/table-scroll.tsx";
import { inline, type Targets, targetsOf } from "./inline.ts";
import { itemsOf, markerOf } from "./list-items.ts";
import { tableAt } from "./table.ts";

/** Longer texts are shown as they are: nobody reads their formatting. */
const LONGEST = 60_000;
/** Lists and quotes inside one another. What is deeper is shown as it is. */
const DEEPEST = 12;

export function Markdown({ text }: { text: string }): JSX.Element {
  if (text.length > LONGEST) return h("div", { class: "markdown plain-text" }, text);
  const lines = text.replaceAll("\t", "    ").split(/\r?\n/);
  return h("div", { class: "markdown" }, blocks(lines, targetsOf(lines), 0));
}

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})(?: |$)/;
const RULE = /^ {0,3}([-*_])(?: *\1){2,} *$/;
const QUOTE = /^ {0,3}> ?/;
const UNDERLINE = /^ {0,3}(?:=+|-+) *$/;
const TARGET = /^ {0,3}\[[^\]]+\]:/;

/** `isTight`: paragraphs are not set apart, as in a list without empty lines. */
function blocks(lines: readonly string[], targets: Targets, depth: number, isTight = false): ComponentChildren[] {
  if (depth > DEEPEST) return [lines.join("\n")];
  const made: ComponentChildren[] = [];
  let at = 0;
  const take = (isPart: (line: string) => boolean): string[] => {
    const from = at;
    while (at < lines.length && isPart(lines[at]!)) at += 1;
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at]!;
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (isEmpty(line) || TARGET.test(line)) at += 1;
    else if (fence !== null && (fence[1]![0] === "~" || !line.slice(fence[0].length).includes("`"))) {
      at += 1;
      const indent = line.indexOf(fence[1]!);
      const code = take((next) => !closes(next, fence[1]!)).map((next) => next.slice(leading(next, indent)));
      at += 1;
      made.push(h("pre", {}, h("code", {}, code.join("\n"))));
    } else if (heading !== null) {
      at += 1;
      made.push(headingOf(heading[1]!.length, withoutHashes(line.slice(heading[0].length)), targets));
    } else if (RULE.test(line)) {
      at += 1;
      made.push(h("hr", {}));
    } else if (QUOTE.test(line)) {
      const quoted = take((next) => QUOTE.test(next) || (!isEmpty(next) && !startsBlock(next)));
      made.push(
        h(
          "blockquote",
          {},
          blocks(
            quoted.map((next) => next.replace(QUOTE, "")),
            targets,
            depth + 1,
          ),
        ),
      );
    } else if (markerOf(line) !== null) {
      const list = itemsOf(lines, at, startsBlock);
      at = list.end;
      const items = list.items.map((item) => h("li", {}, itemOf(item, targets, depth, list.isTight)));
      made.push(list.start === null ? h("ul", {}, items) : h("ol", { start: list.start }, items));
    } else if (leading(line, 4) === 4) {
      const code = take((next) => isEmpty(next) || leading(next, 4) === 4).map((next) => next.slice(4));
      made.push(h("pre", {}, h("code", {}, code.join("\n").trimEnd())));
    } else {
      const table = tableAt(lines, at);
      if (table !== null) {
        at = table.end;
        made.push(tableOf(table.rows, targets));
        continue;
      }
      at += 1;
      const words = [line, ...take((next) => !isEmpty(next) && !startsBlock(next) && !UNDERLINE.test(next))];
      const underline = lines[at];
      if (underline !== undefined && UNDERLINE.test(underline)) {
        at += 1;
        made.push(headingOf(underline.includes("=") ? 1 : 2, words.join("\n"), targets));
        continue;
      }
      const text = inline(words.map((next) => next.trimStart()).join("\n"), targets);
      made.push(isTight ? text : h("p", {}, text));
    }
  }
  return made;
}

/** Whether a line ends the paragraph before it. */
function startsBlock(line: string): boolean {
  const marker = markerOf(line);
  // "1986. A good year" in the middle of a sentence is no list.
  if (marker !== null && !isEmpty(line.slice(marker.width)) && (marker.start === null || marker.start === 1))
    return true;
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line);
}

function itemOf(lines: readonly string[], targets: Targets, depth: number, isTight: boolean): ComponentChildren[] {
  const task = /^\[([ xX])\] /.exec(lines[0]!);
  if (task === null) return blocks(lines, targets, depth + 1, isTight);
  const rest = [lines[0]!.slice(4), ...lines.slice(1)];
  return [task[1] === " " ? "☐ " : "☑ ", ...blocks(rest, targets, depth + 1, isTight)];
}

/** The page has its own h1 and h2. */
function headingOf(level: number, text: string, targets: Targets): JSX.Element {
  return h(`h${Math.min(6, level + 2)}`, {}, inline(text.trim(), targets));
}

function tableOf(rows: readonly string[][], targets: Targets): JSX.Element {
  const cells = (row: readonly string[], tag: "th" | "td") => row.map((cell) => h(tag, {}, inline(cell, targets)));
  const head = h("thead", {}, h("tr", {}, cells(rows[0]!, "th")));
  const body = h(
    "tbody",
    {},
    rows.slice(1).map((row) => h("tr", {}, cells(row, "td"))),
  );
  return h(TableScroll, { label: "Table", children: h("table", {}, [head, body]) });
}

/** A fence is closed by one that is at least as long, with nothing behind it. */
function closes(line: string, fence: string): boolean {
  const found = FENCE.exec(line);
  return found !== null && found[1]!.startsWith(fence) && isEmpty(line.slice(found[0].length));
}

/** Hashes at the end belong to the heading's frame if a space is before them. */
function withoutHashes(line: string): string {
  const text = line.trim();
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  return end === 0 || text[end - 1] === " " ? text.slice(0, end) : text;
}

/** Spaces at the beginning, at most `most`. */
function leading(line: string, most: number): number {
  let spaces = 0;
  while (spaces < most && line[spaces] === " ") spaces += 1;
  return spaces;
}

function isEmpty(line: string): boolean {
  return line.trim() === "";
}
