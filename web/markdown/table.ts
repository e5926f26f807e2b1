// Tables: a row of names, a row of dashes, and rows of cells.

export interface Table {
  /** The first has the names. Every row has as many cells as the first. */
  rows: string[][];
  /** The first line behind it. */
  end: number;
}

const DASHES = /^ *:?-+:? *$/;

/** The table that begins with the line `at`; null if none does. */
export function tableAt(lines: readonly string[], at: number): Table | null {
  const [names, dashes] = [lines[at]!, lines[at + 1] ?? ""];
  if (!names.includes("|") || !dashes.includes("-") || !dashes.includes("|")) return null;
  const head = cellsOf(names);
  const under = cellsOf(dashes);
  if (head.length !== under.length || !under.every((cell) => DASHES.test(cell))) return null;
  const rows = [head];
  let end = at + 2;
  for (; end < lines.length && lines[end]!.includes("|"); end++) {
    const cells = cellsOf(lines[end]!);
    rows.push(head.map((_, i) => cells[i] ?? ""));
  }
  return { rows, end };
}

/** A bar that is escaped belongs to its cell. */
function cellsOf(line: string): string[] {
  const text = line.trim().replace(/^\|/, "");
  const cells = text.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
  return cells.length > 1 && cells.at(-1) === "" ? cells.slice(0, -1) : cells;
}
