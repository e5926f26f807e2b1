// Where a list and its items begin and end.

export interface Marker {
  /** Columns before the text of the item. */
  width: number;
  /** What the markers of one list share: "-", "*", "+", "." or ")". */
  kind: string;
  /** Null for a list without numbers. */
  start: number | null;
}

/** The marker that a line begins with; null if it has none. */
export function markerOf(line: string): Marker | null {
  const found = /^ {0,3}(?:([-*+])|(\d{1,9})([.)]))(?= |$)/.exec(line);
  if (found === null) return null;
  const [mark, bullet, digits, end] = found;
  const text = line.slice(mark.length);
  const spaces = text.length - text.trimStart().length;
  // Five spaces and more are code inside the item; nothing at all still has a width.
  const gap = spaces > 4 || spaces === text.length ? 1 : spaces;
  return { width: mark.length + gap, kind: bullet ?? end!, start: digits === undefined ? null : Number(digits) };
}

export interface List {
  /** The lines of every item, without its marker and indentation. */
  items: string[][];
  start: number | null;
  /** No empty line is between its items, nor inside one. */
  isTight: boolean;
  /** The first line behind it. */
  end: number;
}

/** The list that begins with the line `from`. `startsBlock`: whether a line ends a paragraph. */
export function itemsOf(lines: readonly string[], from: number, startsBlock: (line: string) => boolean): List {
  const first = markerOf(lines[from]!)!;
  const items: string[][] = [];
  let { width } = first;
  let isTight = true;
  let at = from;
  /** Empty lines since the last that was taken: they belong to the list only if something of it follows. */
  let empty = 0;
  for (; at < lines.length; at++) {
    const line = lines[at]!;
    if (line.trim() === "") {
      empty += 1;
      continue;
    }
    const isInside = at > from && line.slice(0, width).trim() === "";
    const marker = isInside ? null : markerOf(line);
    if (isInside || (marker === null && empty === 0 && !startsBlock(line))) {
      if (empty > 0) isTight = false;
      for (; empty > 0; empty--) items.at(-1)!.push("");
      items.at(-1)!.push(isInside ? line.slice(width) : line.trimStart());
    } else if (marker?.kind === first.kind && !isRule(line)) {
      if (empty > 0 && items.length > 0) isTight = false;
      empty = 0;
      width = marker.width;
      items.push([line.slice(width)]);
    } else break;
  }
  return { items, start: first.start, isTight, end: at - empty };
}

function isRule(line: string): boolean {
  return /^ {0,3}([-*])(?: *\1){2,} *$/.test(line);
}
