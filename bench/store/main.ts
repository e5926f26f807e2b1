// `npm run bench:store`: PostgreSQL beside SQLite, in empty tables and in full ones. Claims of jobs, the reads of a request,
// progress events, and the pages of lists. The databases take turns. The page goes to bench/results.

import { mkdirSync, writeFileSync } from "node:fs";
import { getPriority } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { flagsOrExit } from "../process/flags-or-exit.ts";
import { describeMachine, machineSlug } from "../report/machine.ts";
import { type Database, postgres, sqlite } from "./databases.ts";
import { addBusyModel, addKnown, type Filling, fill, type Known } from "./fill.ts";
import { claims, events, lookup, lookups, reads, type Sample } from "./measure.ts";
import { type Row, report } from "./report.ts";

const USAGE = `npm run bench:store -- [options]
  --quick     a hundredth of the rows and one round: about a minute
  --out DIR   where the page goes (default: bench/results; "-" only prints it)`;
const FULL: Filling = { jobs: 100_000, events: 1_000_000 };
const QUICK: Filling = { jobs: 1_000, events: 10_000 };
/** Of one model: jobs that ended, and jobs that wait for the one that runs. */
const BUSY = { past: 2000, waiting: 500 };
const CLIENTS = 8;

const { quick, out } = flagsOrExit((args) => {
  const options = { quick: { type: "boolean", default: false }, out: { type: "string" } } as const;
  const { values } = parseArgs({ args, options });
  const results = fileURLToPath(new URL("../../../results", import.meta.url));
  return { quick: values.quick, out: values.out === "-" ? null : (values.out ?? results) };
}, USAGE);
const size = quick ? QUICK : FULL;
const roundCount = quick ? 1 : 3;
const machine = describeMachine();

type Work = (db: Database, known: Known) => Promise<Sample>;

/** All rounds of an operation, after one that does not count. The databases take turns, so that both meet the same disturbances. */
async function rounds(what: string, work: (db: Database) => Promise<Sample>): Promise<Row> {
  const found = new Map<string, Sample[]>(databases.map(({ name }) => [name, []]));
  for (const db of databases) await work(db);
  for (let i = 0; i < roundCount; i++) for (const db of databases) found.get(db.name)!.push(await work(db));
  console.error(what);
  return { what, rounds: found };
}

const count = quick ? 100 : 500;
const OPERATIONS: readonly (readonly [string, Work])[] = [
  ["a worker claims a job", (db) => claims(db, count, 1)],
  [`${CLIENTS} workers claim jobs`, (db) => claims(db, count, CLIENTS)],
  ["reads of a request, one at a time", (db, known) => reads(db, count, 1, known)],
  [`reads of a request, ${CLIENTS} at a time`, (db, known) => reads(db, count, CLIENTS, known)],
  ["an event, one job", (db) => events(db, count, 1)],
  [`an event, ${CLIENTS} jobs`, (db) => events(db, count, CLIENTS)],
];

async function measure(title: string, operations: typeof OPERATIONS): Promise<{ title: string; rows: Row[] }> {
  const rows: Row[] = [];
  for (const [what, work] of operations) rows.push(await rounds(what, (db) => work(db, known.get(db.name)!)));
  return { title, rows };
}

const databases = [await sqlite(), await postgres()];
const known = new Map<string, Known>();
try {
  for (const db of databases) known.set(db.name, await addKnown(db.store));
  const empty = await measure("Empty tables", OPERATIONS);
  for (const db of databases) {
    const began = performance.now();
    await fill(db.store, size);
    await db.gatherStatistics();
    console.error(`${db.name}: filled in ${((performance.now() - began) / 1000).toFixed(0)} s`);
  }
  const rowsOf = `${size.jobs.toLocaleString("en")} jobs and ${size.events.toLocaleString("en")} events`;
  const full = await measure(`${rowsOf} in the tables`, OPERATIONS);
  const pages: Row[] = [];
  const reading = new Map(databases.map((db) => [db.name, lookups(db, known.get(db.name)!)]));
  for (const what of Object.keys(reading.get(databases[0]!.name)!)) {
    pages.push(await rounds(what, (db) => lookup(db, count, reading.get(db.name)![what]!)));
  }
  for (const db of databases) await addBusyModel(db.store, BUSY.past, BUSY.waiting);
  const busy = await measure(
    `Claims beside a busy model: ${BUSY.waiting} of its jobs wait for one that runs, ${BUSY.past} have ended`,
    OPERATIONS.slice(0, 2),
  );
  const page = report(
    {
      databases: databases.map(({ name }) => name),
      tables: [empty, full, busy],
      lookups: pages,
      command: `npm run bench:store${quick ? " -- --quick" : ""}`,
      conditions: `${roundCount} rounds of ${count} operations after one that does not count; both databases wait for the disk at a commit, except for events. Niceness ${getPriority()}.`,
    },
    machine,
  );
  console.log(page);
  if (out !== null) {
    mkdirSync(out, { recursive: true });
    writeFileSync(join(out, `${new Date().toISOString().slice(0, 10)}-${machineSlug(machine)}-store.md`), page);
  }
} finally {
  for (const db of databases) await db.close();
}
