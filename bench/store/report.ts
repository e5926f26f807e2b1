// The page of `npm run bench:store`.

import { median } from "../process/stopwatch.ts";
import type { Machine } from "../report/machine.ts";
import type { Sample } from "./measure.ts";

/** Rounds of one operation, by database. */
export interface Row {
  what: string;
  rounds: ReadonlyMap<string, readonly Sample[]>;
}

export interface Results {
  databases: readonly string[];
  /** With the tables empty, then full. */
  tables: readonly { title: string; rows: readonly Row[] }[];
  lookups: readonly Row[];
  command: string;
  conditions: string;
}

const BARS = "200 claims per second, 2 ms for the reads of a request (p99) and 10 ms for a page";

export function report({ databases, tables, lookups, command, conditions }: Results, machine: Machine): string {
  return [
    "# What the store costs",
    "",
    `${machine.cpu}, ${machine.cores} cores, ${machine.system}, Node ${machine.node}; load before: ${machine.load.toFixed(1)}.`,
    `Command: \`${command}\`. ${conditions}`,
    `Bars for PostgreSQL: ${BARS}.`,
    "",
    "CPU counts this process and the processes of PostgreSQL. The last column compares medians of the time for each operation.",
    "",
    ...tables.flatMap(({ title, rows }) => section(title, rows, databases)),
    ...section("Pages and counts in full tables", lookups, databases),
  ].join("\n");
}

function section(title: string, rows: readonly Row[], databases: readonly string[]): string[] {
  const columns = databases.flatMap((name) => [`${name}: per second`, "p50 ms", "p99 ms", "CPU ms each"]);
  const ratio = databases.length === 2 ? [`${databases[1]} : ${databases[0]}`] : [];
  return [
    `## ${title}`,
    "",
    `| | ${[...columns, ...ratio].join(" | ")} |`,
    `|---|${"---:|".repeat(columns.length + ratio.length)}`,
    ...rows.map((row) => line(row, databases)),
    "",
  ];
}

function line({ what, rounds }: Row, databases: readonly string[]): string {
  const of = databases.map((name) => rounds.get(name)!);
  const perOne = of.map((samples) => median(samples.map(({ seconds, times }) => seconds / times.length)));
  const cells = of.flatMap((samples, i) => {
    const times = samples.flatMap((sample) => sample.times).sort((a, b) => a - b);
    const cpu = median(samples.map(({ cpuSeconds, times }) => (1000 * (cpuSeconds ?? Number.NaN)) / times.length));
    return [whole(1 / perOne[i]!), short(at(times, 0.5)), short(at(times, 0.99)), Number.isNaN(cpu) ? "" : short(cpu)];
  });
  const ratio = databases.length === 2 ? [`${(perOne[1]! / perOne[0]!).toFixed(1)}x`] : [];
  return `| ${what} | ${[...cells, ...ratio].join(" | ")} |`;
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
}

function short(ms: number): string {
  return ms < 1 ? ms.toFixed(3) : ms.toFixed(1);
}

function whole(value: number): string {
  return Math.round(value).toLocaleString("en");
}
