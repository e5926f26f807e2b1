// A table whose numbers come from pages of bench/results names them in the line above it: <!-- numbers: bench/results/PAGE.md … -->.
// Each of its numbers is on one of them, perhaps with more digits. The README's tables of speed have such a line.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { pages, ROOT, read } from "./pages.ts";

const checked = pages.filter((page) => page === "README.md" || page.startsWith("docs/"));
const SPEED = /tokens per second|tokens\/s/i;

interface Table {
  head: string;
  /** Cells of its rows, without the first of each, which says what the row is about. */
  cells: string[];
  /** The pages that have its numbers. */
  sources: string[];
}

function tablesOf(text: string): Table[] {
  return [...text.matchAll(/(?:^<!-- numbers: (.+) -->\n)?(^\|.*\n\|[-:| ]+\n(?:\|.*(?:\n|$))*)/gm)].map(
    ([, sources, table]) => {
      const [head, , ...rows] = table!.trimEnd().split("\n");
      return {
        head: head!,
        cells: rows.flatMap((row) => row.split("|").slice(2, -1)),
        sources: sources?.split(" ") ?? [],
      };
    },
  );
}

function numbersIn(text: string): string[] {
  return text.replace(/(?<=\d),(?=\d{3})/g, "").match(/\d+(?:\.\d+)?/g) ?? [];
}

/** Whether a number with more digits may have been rounded to `shown`: 74,070 to 74,100, and 0.713 to 0.71. */
function isRounded(exact: string, shown: string): boolean {
  const decimals = shown.split(".")[1];
  const unit = decimals === undefined ? 10 ** /0*$/.exec(shown)![0].length : 10 ** -decimals.length;
  return Math.abs(Number(exact) - Number(shown)) <= unit / 2 + 1e-9;
}

/** The numbers of a table that are not in `source`, the text of its pages. */
function unknownNumbers({ cells }: Table, source: string): string[] {
  const known = numbersIn(source);
  return cells.flatMap(numbersIn).filter((shown) => !known.some((exact) => isRounded(exact, shown)));
}

it.each(checked)("numbers in %s come from the page that they name", (page) => {
  const wrong = tablesOf(read(page)).flatMap((table) => {
    const { head, sources } = table;
    if (sources.length === 0) return page === "README.md" && SPEED.test(head) ? [`names no page: ${head}`] : [];
    const missing = sources.filter((source) => !existsSync(join(ROOT, source)));
    return missing.length > 0
      ? missing.map((source) => `no page ${source}`)
      : unknownNumbers(table, sources.map(read).join("\n"));
  });
  expect(wrong).toEqual([]);
});

it("sees a number that is on no page", () => {
  const table = "| model | tokens/s |\n|---|---:|\n| 44 M | 1,444, 0.71x |\n| 350 M | 74,100 |\n";
  const [found] = tablesOf(`<!-- numbers: bench/results/a.md -->\n${table}`);
  expect(found).toMatchObject({ head: "| model | tokens/s |", sources: ["bench/results/a.md"] });
  expect(unknownNumbers(found!, "1444, 0.71 and 74,070")).toEqual([]);
  expect(unknownNumbers(found!, "1445, 0.72 and 74,170")).toEqual(["1444", "0.71", "74100"]);
});
