// The score table: which grade counts for which task, the targets, and the counting.

import type { Source, TestCase } from "./cases.ts";
import type { Grade } from "./grade.ts";

interface Row {
  task: string;
  /** "form": the reply has the requested form; "right": it is also correct. */
  counts: "form" | "right";
  /** Lowest share to reach, and the highest if there is one. Absent = only reported. */
  atLeast?: number;
  atMost?: number;
  /** Must score higher than this task. */
  above?: string;
}

const rows: readonly Row[] = [
  { task: "one-word", counts: "form", atLeast: 0.95 },
  { task: "one-word", counts: "right" },
  { task: "yes-no-maybe", counts: "form", atLeast: 0.95 },
  { task: "yes-no-maybe", counts: "right" },
  { task: "json", counts: "form", atLeast: 0.9 },
  { task: "extract-json", counts: "right" },
  { task: "add-2", counts: "right", atLeast: 0.95 },
  { task: "add-3", counts: "right", atLeast: 0.3, atMost: 0.8 },
  { task: "add-3-think", counts: "right", above: "add-3" },
  { task: "tool", counts: "right", atLeast: 0.9 },
  { task: "passage", counts: "right", atLeast: 0.7 },
  { task: "name-memory", counts: "right", atLeast: 0.9 },
  ...["subtract-2", "multiply", "list", "text-ops", "compare", "calendar"].map((task) => ({
    task,
    counts: "right" as const,
  })),
];
const sources: readonly Source[] = ["held-out", "reworded", "free"];

interface Count {
  cases: number;
  form: number;
  right: number;
}

export interface Scores {
  /** A Markdown table. Shares that miss their target are marked. */
  table: string;
  /** One line for every target missed on held-out or reworded prompts. */
  missed: string[];
}

export function scoresOf(graded: readonly { test: TestCase; grade: Grade }[]): Scores {
  const counts = new Map<string, Count>();
  for (const { test, grade: result } of graded) {
    const key = `${test.task}/${test.source}`;
    const count = counts.get(key) ?? { cases: 0, form: 0, right: 0 };
    count.cases++;
    if (result.format) count.form++;
    if (result.pass) count.right++;
    counts.set(key, count);
  }
  const share = (task: string, source: Source, what: "form" | "right") => {
    const count = counts.get(`${task}/${source}`);
    return count === undefined ? undefined : count[what] / count.cases;
  };
  const lines = [
    `| task | counted | target | ${sources.map((source) => `${source} | n`).join(" | ")} |`,
    `|---|---|---|${sources.map(() => "---:|---:|").join("")}`,
  ];
  const missed: string[] = [];
  for (const row of rows) {
    const cells: string[] = [];
    for (const source of sources) {
      const got = share(row.task, source, row.counts);
      const rival = row.above === undefined ? undefined : share(row.above, source, row.counts);
      if (got === undefined) {
        cells.push("", "");
        continue;
      }
      const miss =
        got < (row.atLeast ?? 0) || got > (row.atMost ?? 1) || (rival !== undefined && got <= rival && rival < 1);
      if (miss && source !== "free") missed.push(`${row.task} (${source}): ${percent(got)}, wanted ${targetOf(row)}`);
      cells.push(miss ? `**${percent(got)}**` : percent(got), String(counts.get(`${row.task}/${source}`)?.cases));
    }
    if (cells.some((cell) => cell !== ""))
      lines.push(`| ${row.task} | ${row.counts} | ${targetOf(row)} | ${cells.join(" | ")} |`);
  }
  return { table: lines.join("\n"), missed };
}

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

function targetOf(row: Row): string {
  if (row.above !== undefined) return `> ${row.above}`;
  if (row.atLeast === undefined) return "";
  return row.atMost === undefined ? `≥ ${100 * row.atLeast} %` : `${100 * row.atLeast} to ${100 * row.atMost} %`;
}
