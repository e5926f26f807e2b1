// Text functions for Python's string methods and Jinja's filters. Lengths count characters, whitespace is Python's, and the
// length of a result is checked before it is built.

/** What str.strip() removes; JavaScript's trim() removes U+FEFF as well and leaves U+001C to U+001F and U+0085. */
const WHITESPACE =
  "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000";

/** Where str.splitlines() ends a line. */
const LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029";
const line = new RegExp(`[^${LINE_ENDS}]*(?:\r\n|[${LINE_ENDS}]|$)`, "g");
const lineEnd = new RegExp(`(?:\r\n|[${LINE_ENDS}])$`);

const word = new RegExp(`[^${WHITESPACE}]+`, "g");

export type Side = "both" | "left" | "right";

export function strip(text: string, side: Side, characters: string | null): string {
  const removed = new Set(characters ?? WHITESPACE);
  const letters = characters === null ? text : Array.from(text);
  let from = 0;
  let to = letters.length;
  if (side !== "right") while (from < to && removed.has(letters[from]!)) from++;
  if (side !== "left") while (to > from && removed.has(letters[to - 1]!)) to--;
  const kept = letters.slice(from, to);
  return typeof kept === "string" ? kept : kept.join("");
}

/** Characters, not UTF-16 units. */
export function characterCount(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/** Only the first letter is a capital. */
export function capitalise(text: string): string {
  const first = text.codePointAt(0);
  if (first === undefined) return "";
  const letter = String.fromCodePoint(first);
  return letter.toUpperCase() + text.slice(letter.length).toLowerCase();
}

/** Checks the length of the result before building it. `count` < 0 replaces all. */
export function replace(text: string, from: string, to: string, count: number, limit: number): string {
  const parts = from === "" ? ["", ...Array.from(text), ""] : text.split(from);
  const replaced = count < 0 ? parts.length - 1 : Math.min(count, parts.length - 1);
  checkLength(text.length + replaced * (to.length - from.length), limit);
  return (
    parts.slice(0, replaced + 1).join(to) +
    parts
      .slice(replaced + 1)
      .map((part) => from + part)
      .join("")
  );
}

export function join(parts: readonly string[], separator: string, limit: number): string {
  let length = Math.max(0, parts.length - 1) * separator.length;
  for (const part of parts) length += part.length;
  checkLength(length, limit);
  return parts.join(separator);
}

/** At a separator; at most `limit` times (< 0: everywhere), counted from one end. */
export function splitText(text: string, separator: string, limit: number, fromRight: boolean): string[] {
  if (separator === "") throw new Error("empty separator");
  const parts = text.split(separator);
  if (limit < 0 || parts.length <= limit + 1) return parts;
  if (!fromRight) return [...parts.slice(0, limit), parts.slice(limit).join(separator)];
  const kept = parts.length - limit;
  return [parts.slice(0, kept).join(separator), ...parts.slice(kept)];
}

/** At runs of whitespace; the rest after `limit` splits keeps its inner whitespace. */
export function splitWords(text: string, limit: number, fromRight: boolean): string[] {
  const words = [...text.matchAll(word)];
  if (limit < 0 || words.length <= limit) return words.map(([found]) => found);
  const spans = words.map(({ 0: { length }, index }) => [index, index + length] as const);
  const write = ([from, to]: readonly [number, number]): string => text.slice(from, to);
  if (!fromRight) return [...spans.slice(0, limit).map(write), text.slice(spans[limit]![0])];
  const kept = spans.length - limit;
  return [text.slice(0, spans[kept - 1]![1]), ...spans.slice(kept).map(write)];
}

export function splitLines(text: string, keepEnds: boolean): string[] {
  const lines = text.match(line) ?? [];
  // The last match is the empty one at the end of the text.
  lines.pop();
  return keepEnds ? lines : lines.map((whole) => whole.replace(lineEnd, ""));
}

/** Fills up to `width` characters. `before` is the share of the filling that comes first: 0, 1, or 0.5 to centre. */
export function pad(text: string, width: number, fill: string, before: 0 | 0.5 | 1, limit: number): string {
  if (characterCount(fill) !== 1) throw new Error("the fill character must be exactly one character long");
  const missing = Math.max(0, width - characterCount(text));
  checkLength(text.length + missing * fill.length, limit);
  // str.center() puts the odd character first where the width is odd.
  const first = before === 0.5 ? Math.floor(missing / 2) + (missing & width & 1) : missing * before;
  return fill.repeat(first) + text + fill.repeat(missing - first);
}

export function indent(text: string, margin: string, first: boolean, blank: boolean, limit: number): string {
  const lines = text.split("\n");
  checkLength(text.length + lines.length * margin.length, limit);
  return lines
    .map((line, i) => ((i === 0 && !first) || (line === "" && !blank && i > 0) ? line : margin + line))
    .join("\n");
}

export function checkLength(length: number, limit: number): void {
  if (length > limit) throw new Error(`a text grew beyond ${limit} characters`);
}

export function escapeHtml(text: string): string {
  const names: Readonly<Record<string, string>> = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    "'": "&#39;",
    '"': "&#34;",
  };
  return text.replace(/[&<>'"]/g, (sign) => names[sign]!);
}
