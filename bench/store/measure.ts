// What is measured of a database, each through the code that a server uses.

import { tablesOn, transactionsOn } from "../../src/store/tables/tables.ts";
import { TokenStore } from "../../src/store/tokens.ts";
import type { Database } from "./databases.ts";
import { addWaiting, type Known } from "./fill.ts";

/** Of one operation, in the order in which they ended. */
export interface Sample {
  /** Milliseconds of each. */
  times: number[];
  /** Of all together. */
  seconds: number;
  /** Processor time of all together, with the database's own. */
  cpuSeconds: number | null;
}

/** A page as a route reads it: one row more than it shows. */
const PAGE = 101;
const LEASE_MS = 30_000;

/** Runs the operation `count` times, `clients` at a time. */
async function sample(db: Database, count: number, clients: number, work: () => Promise<unknown>): Promise<Sample> {
  const times: number[] = [];
  let left = count;
  const client = async () => {
    while (left > 0) {
      left -= 1;
      const began = performance.now();
      await work();
      times.push(performance.now() - began);
    }
  };
  const [began, cpu] = [performance.now(), db.cpuSeconds()];
  await Promise.all(Array.from({ length: clients }, client));
  const [seconds, after] = [(performance.now() - began) / 1000, db.cpuSeconds()];
  return { times, seconds, cpuSeconds: cpu === null || after === null ? null : after - cpu };
}

/** Workers take jobs until all run. Then the jobs end, so that the next round finds the same. */
export async function claims(db: Database, count: number, clients: number): Promise<Sample> {
  await addWaiting(db.store, count);
  const { leaseTable } = tablesOn(db.store);
  const result = await sample(db, count, clients, async () => {
    if ((await leaseTable.claim("bench", LEASE_MS)) === null) throw new Error("a job that waits was not found");
  });
  await db.store.run("DELETE FROM jobs WHERE model_id LIKE 'waiting-%'");
  return result;
}

/** What a request for a policy asks before it is admitted: who calls, then which model, its newest step and its folder. */
export function reads(db: Database, count: number, clients: number, known: Known): Promise<Sample> {
  const [tokens, { modelTable }] = [new TokenStore(db.store), tablesOn(db.store)];
  const policy = { entity: null, project: null, name: known.model.name, step: null };
  return sample(db, count, clients, async () => {
    if (!(await tokens.check(known.secret)).ok) throw new Error("the token was not found");
    const found = await modelTable.policy(known.owner, policy);
    if (!found?.files) throw new Error("the step was not found");
  });
}

/** The progress of running jobs, one for each client, as a worker writes it. */
export async function events(db: Database, count: number, clients: number): Promise<Sample> {
  await addWaiting(db.store, clients);
  const { leaseTable } = tablesOn(db.store);
  const leases = [];
  for (let i = 0; i < clients; i++) leases.push((await leaseTable.claim("bench", LEASE_MS))!.lease);
  const transaction = transactionsOn(db.store);
  const data = { "train/loss": 0.1234567, "train/grad_norm": 1.25, "train/entropy": 0.5, learning_rate: 1e-5 };
  const free = [...leases];
  const result = await sample(db, count, clients, async () => {
    const lease = free.pop()!;
    const add = async (tx: ReturnType<typeof tablesOn>) => {
      await tx.leaseTable.setProgress(lease, 0.5);
      await tx.leaseTable.addEvent(lease, "gradient_step", data);
    };
    await transaction(add, { relaxed: true });
    free.push(lease);
  });
  await db.store.run("DELETE FROM jobs WHERE model_id LIKE 'waiting-%'");
  return result;
}

/** Reads that must not grow with the tables, by what they are. */
export function lookups(db: Database, known: Known): Record<string, () => Promise<unknown>> {
  const { jobTable, eventTable, modelTable } = tablesOn(db.store);
  const { owner, model, longJob } = known;
  const middle = async (table: "jobs" | "job_events", where: string, value: string) => {
    const sql = `SELECT id FROM ${table} WHERE ${where} = ?1 ORDER BY seq LIMIT 1 OFFSET
      (SELECT COUNT(*) / 2 FROM ${table} WHERE ${where} = ?1)`;
    return (await db.store.get<{ id: string }>(sql, value))!.id;
  };
  const [middleJob, middleEvent] = [middle("jobs", "owner", owner), middle("job_events", "job_id", longJob)];
  return {
    "jobs: the newest": () => jobTable.list(owner, null, null, null, PAGE),
    "jobs: a page in the middle": async () => jobTable.list(owner, null, null, await middleJob, PAGE),
    "jobs of a model": () => jobTable.list(owner, model.id, null, null, PAGE),
    "jobs that failed": () => jobTable.list(owner, null, "FAILED", null, PAGE),
    "jobs that run (none)": () => jobTable.list(owner, null, "RUNNING", null, PAGE),
    "jobs of an owner with none": () => jobTable.list("nobody", null, null, null, PAGE),
    "events of a long job: the first": () => eventTable.list(longJob, null, PAGE),
    "events of a long job: a page in the middle": async () => eventTable.list(longJob, await middleEvent, PAGE),
    "models: the first": () => modelTable.list(owner, {}, null, PAGE),
    "open jobs of an owner, counted": () => jobTable.countOpen(owner),
    "waiting jobs, counted": () => jobTable.count("PENDING"),
  };
}

export function lookup(db: Database, count: number, work: () => Promise<unknown>): Promise<Sample> {
  return sample(db, count, 1, work);
}
