// The score table: which grade counts for which task, what is asked for, and the counting. Used by the evaluation over
// HTTP (eval.ts) and for replies written on a GPU (`node dist/score.js CASES REPLIES`).

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import type { TestCase } from "./cases.ts";
import { type Grade, grade, type Reply, withoutThinking } from "./grade.ts";

interface Row {
  counts: "format" | "pass";
  /** Lowest share to reach, and the highest where more is not wanted; absent = reported only. */
  atLeast?: number;
  atMost?: number;
}

export const rows: Readonly<Record<string, Row>> = {
  "one-word": { counts: "format", atLeast: 0.95 },
  "yes-no-maybe": { counts: "format", atLeast: 0.95 },
  json: { counts: "format", atLeast: 0.9 },
  "extract-json": { counts: "pass" },
  "add-2": { counts: "pass", atLeast: 0.95 },
  "add-3": { counts: "pass", atLeast: 0.3, atMost: 0.8 },
  "add-3-think": { counts: "pass" },
  tool: { counts: "pass", atLeast: 0.9 },
  passage: { counts: "pass", atLeast: 0.7 },
  "name-memory": { counts: "pass", atLeast: 0.9 },
};

export interface Tally {
  task: string;
  source: string;
  cases: number;
  format: number;
  pass: number;
}

export function tally(graded: readonly { test: TestCase; grade: Grade }[]): Tally[] {
  const out = new Map<string, Tally>();
  for (const { test, grade: result } of graded) {
    const key = `${test.task}/${test.source}`;
    const entry = out.get(key) ?? { task: test.task, source: test.source, cases: 0, format: 0, pass: 0 };
    entry.cases++;
    if (result.format) entry.format++;
    if (result.pass) entry.pass++;
    out.set(key, entry);
  }
  return [...out.values()];
}

/** A table for people; a row that misses its mark says so. */
export function table(tallies: readonly Tally[]): string {
  const lines = ["| task | cases | n | format | right | wanted |", "|---|---|---:|---:|---:|---|"];
  const percent = (part: number, whole: number) => `${((100 * part) / whole).toFixed(1)} %`;
  for (const entry of tallies) {
    const row = rows[entry.task];
    const share = (row?.counts === "format" ? entry.format : entry.pass) / entry.cases;
    const low = row?.atLeast !== undefined && share < row.atLeast;
    const high = row?.atMost !== undefined && share > row.atMost;
    const wanted =
      row?.atLeast === undefined
        ? ""
        : `${row.counts} ≥ ${row.atLeast * 100} %${row.atMost === undefined ? "" : `, ≤ ${row.atMost * 100} %`}${low || high ? " **missed**" : ""}`;
    lines.push(
      `| ${entry.task} | ${entry.source} | ${entry.cases} | ${percent(entry.format, entry.cases)} | ${percent(entry.pass, entry.cases)} | ${wanted} |`,
    );
  }
  return lines.join("\n");
}

export function gradeText(test: TestCase, text: string): Grade {
  const reply: Reply = { content: withoutThinking(text) };
  if (test.conversation.check === undefined) throw new Error(`case ${test.id} has no check`);
  return grade(test.conversation.check, reply);
}

const readLines = <T>(path: string): T[] =>
  readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as T);

function main(casesPath: string, repliesPath: string, showFailures: boolean): void {
  const replies = new Map(
    readLines<{ id: string; reply: string }>(repliesPath).map((entry) => [entry.id, entry.reply]),
  );
  const graded: { test: TestCase; grade: Grade }[] = [];
  for (const test of readLines<TestCase & { prompt: string }>(casesPath)) {
    const reply = replies.get(test.id);
    if (reply === undefined || test.conversation.check === undefined) continue;
    const result = gradeText(test, reply);
    graded.push({ test, grade: result });
    if (showFailures && !result.pass)
      console.log(
        JSON.stringify({ id: test.id, prompt: test.prompt.slice(-300), check: test.conversation.check, reply }),
      );
  }
  console.log(table(tally(graded)));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [casesPath, repliesPath, flag] = process.argv.slice(2);
  if (casesPath === undefined || repliesPath === undefined)
    throw new Error("usage: score.js CASES REPLIES [--failures]");
  main(casesPath, repliesPath, flag === "--failures");
}
