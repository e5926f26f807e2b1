// `npm run bench:grammar`: Flywheel's structured output beside XGrammar over public suites of JSON schemas: what
// compiles, what is judged right, and how long compiling and masks take. The engines take turns on every schema.
// bench/README.md says how to get the suites.

import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { flagsOrExit } from "../process/flags-or-exit.ts";
import { describeMachine, machineSlug } from "../report/machine.ts";
import { Contestant } from "./contestant.ts";
import { type Flags, readFlags, USAGE } from "./flags.ts";
import { type Row, report } from "./report.ts";
import { readCases, type SchemaCase, type SuiteName, suiteFiles } from "./suites.ts";
import { Tally } from "./tally.ts";

const log = (line: string): void => console.error(line);

async function bench(flags: Flags): Promise<Row[]> {
  const rows: Row[] = [];
  for (const suite of flags.only) {
    const files = suiteFiles(flags.suites, suite, flags.sample);
    log(`— ${suite}: ${files.length} files`);
    rows.push(...(await benchSuite(flags, suite, files)));
  }
  return rows;
}

async function benchSuite(flags: Flags, suite: SuiteName, files: string[]): Promise<Row[]> {
  const rows = flags.vocabularies.flatMap((vocabulary) =>
    flags.engines.map((engine): Row => ({ suite, engine, vocabulary, tally: new Tally() })),
  );
  const waiting = files.entries();
  const work = async (): Promise<void> => {
    const contestants = rows.map(
      ({ engine, vocabulary }) =>
        new Contestant(engine, { vocabulary, jsonOptions: flags.jsonOptions }, flags.limitSeconds),
    );
    for (const [index, file] of waiting) {
      if (index > 0 && index % 500 === 0) log(`  ${index} of ${files.length}`);
      for (const each of readCases(flags.suites, suite, file)) await measure(each, contestants, rows, flags.list);
    }
    await Promise.all(contestants.map((contestant) => contestant.stop()));
  };
  await Promise.all(Array.from({ length: flags.jobs }, work));
  return rows;
}

async function measure(
  given: SchemaCase,
  contestants: readonly Contestant[],
  rows: readonly Row[],
  list: string | null,
): Promise<void> {
  const job = { schema: given.schema, instances: given.instances.map(({ text }) => text) };
  for (const [index, contestant] of contestants.entries()) {
    const verdict = await contestant.measure(job);
    const { engine, vocabulary, tally } = rows[index]!;
    tally.add(given, verdict);
    if (list === null) continue;
    const shown = verdict.compiled
      ? { ...verdict, accepted: undefined, wrong: wrongOnes(given, verdict.accepted), microseconds: undefined }
      : verdict;
    const tokens = verdict.compiled
      ? {
          tokens: verdict.microseconds.length,
          meanUs: Math.round(verdict.microseconds.reduce((sum, each) => sum + each, 0) / verdict.microseconds.length),
          slowestUs: Math.round(verdict.microseconds.reduce(larger, 0)),
        }
      : {};
    appendFileSync(
      list,
      `${JSON.stringify({ suite: given.suite, id: given.id, engine, vocabulary, ...shown, ...tokens })}\n`,
    );
  }
}

function larger(a: number, b: number): number {
  return Math.max(a, b);
}

/** Instances that were judged differently than the suite does. */
function wrongOnes({ instances }: SchemaCase, accepted: readonly boolean[]) {
  return instances.flatMap(({ valid, text }, index) => (accepted[index] === valid ? [] : [{ index, valid, text }]));
}

const flags = flagsOrExit(readFlags, USAGE);
if (flags.list !== null) writeFileSync(flags.list, "");
const startedAt = new Date();
const options = process.argv.slice(2).map((word, i, all) => (all[i - 1] === "--suites" ? "DIR" : word));
const page = report(await bench(flags), `npm run bench:grammar -- ${options.join(" ")}`);
console.log(page);
if (flags.out !== null) {
  const path = join(flags.out, `${startedAt.toISOString().slice(0, 10)}-${machineSlug(describeMachine())}-grammar.md`);
  mkdirSync(flags.out, { recursive: true });
  writeFileSync(path, page);
  log(`written to ${path}`);
}
