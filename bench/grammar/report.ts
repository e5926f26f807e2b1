// The page of `npm run bench:grammar`.

import { describeMachine } from "../report/machine.ts";
import type { EngineName } from "./engine.ts";
import type { SuiteName } from "./suites.ts";
import { quantile, type Tally } from "./tally.ts";
import type { VocabularyName } from "./vocabulary.ts";

export interface Row {
  suite: SuiteName;
  engine: EngineName;
  vocabulary: VocabularyName;
  tally: Tally;
}

const TITLES: Readonly<Record<SuiteName, string>> = {
  "test-suite": "JSON-Schema-Test-Suite, core of drafts 7, 2019-09 and 2020-12",
  maskbench: "JSONSchemaBench, the MaskBench set",
  schemastore: "SchemaStore",
  large: "Large schemas",
};
const MOST_REASONS = 20;

export function report(rows: readonly Row[], command: string): string {
  const machine = describeMachine();
  const lines = [
    "# Structured output over public suites",
    "",
    `${machine.cpu}, ${machine.cores} cores, ${machine.system}, Node ${machine.node}; load before: ${machine.load.toFixed(1)}.`,
    `Command: \`${command}\`.`,
    "",
  ];
  for (const suite of new Set(rows.map((row) => row.suite)))
    lines.push(
      ...section(
        suite,
        rows.filter((row) => row.suite === suite),
      ),
    );
  return lines.join("\n");
}

function section(suite: SuiteName, rows: readonly Row[]): string[] {
  const names = rows.map(({ engine, vocabulary }) => `${engine} ${vocabulary}`);
  const row = (title: string, cell: (tally: Tally) => string): string =>
    `| ${title} | ${rows.map(({ tally }) => cell(tally)).join(" | ")} |`;
  const lines = [`## ${TITLES[suite]}`, "", `| | ${names.join(" | ")} |`, `|---|${"---:|".repeat(rows.length)}`];
  lines.push(row("schemas compiled", (tally) => share(tally.compiled, tally.schemas)));
  if (rows.some(({ tally }) => tally.valid + tally.invalid > 0)) {
    lines.push(
      row("every instance judged right", (tally) => share(tally.right, tally.schemas)),
      row("valid instances rejected", (tally) => share(tally.validRejected, tally.valid)),
      row("invalid instances accepted", (tally) => share(tally.invalidAccepted, tally.invalid)),
    );
  }
  lines.push(row("compile, CPU ms p50 / p95 / p99 / max", compileCell));
  if (rows.some(({ tally }) => tally.valid + tally.invalid > 0)) {
    const times = new Map(rows.map(({ tally }) => [tally, tally.tokenTimes()]));
    lines.push(row("mask and accept, µs mean / p50 / p95 / p99 / max", (tally) => maskCell(times.get(tally)!)));
    lines.push(row("tokens", (tally) => whole(times.get(tally)!.length)));
  }
  lines.push("");
  for (const { engine, tally } of rows.filter((each) => each.vocabulary === rows[0]!.vocabulary)) {
    if (tally.refusals.length === 0) continue;
    lines.push(`Not compiled by ${engine}:`, "");
    for (const [reason, count] of tally.refusals.slice(0, MOST_REASONS)) lines.push(`* ${whole(count)} × ${reason}`);
    lines.push("");
  }
  return lines;
}

function compileCell({ compileMs }: Tally): string {
  const sorted = Float64Array.from(compileMs).sort();
  return [0.5, 0.95, 0.99, 1].map((at) => short(quantile(sorted, at))).join(" / ");
}

function maskCell(sorted: Float32Array): string {
  const mean = sorted.reduce((sum, time) => sum + time, 0) / sorted.length;
  return [mean, ...[0.5, 0.95, 0.99, 1].map((at) => quantile(sorted, at))].map(short).join(" / ");
}

function share(part: number, of: number): string {
  return of === 0 ? "–" : `${whole(part)} of ${whole(of)} (${((100 * part) / of).toFixed(1)} %)`;
}

function short(value: number): string {
  return value < 10 ? value.toFixed(1) : whole(Math.round(value));
}

function whole(value: number): string {
  return value.toLocaleString("en");
}
