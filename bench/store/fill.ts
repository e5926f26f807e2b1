// Fills the tables as years of use would: many models, one owner with half of the jobs, one job with very many events. Ids
// are scattered, as random ones are.

import { randomUUID } from "node:crypto";
import type { Store } from "../../src/store/store.ts";
import { tablesOn } from "../../src/store/tables/tables.ts";
import { TokenStore } from "../../src/store/tokens.ts";

export interface Filling {
  jobs: number;
  events: number;
}

/** What the measurements ask for. */
export interface Known {
  /** Of a token that exists. */
  secret: string;
  /** Has half of the jobs. */
  owner: string;
  /** A model of the owner, with 100 steps. */
  model: { id: string; name: string };
  /** Has 1 % of all events. */
  longJob: string;
}

const MODELS = 1000;
const STEPS = 100;
const OWNER = "owner-0";
/** Rows per statement: a database limits how long one may take. */
const CHUNK = 5_000;
/** Primes above the number of rows: multiplying modulo a prime scatters numbers and repeats none. */
const SCATTER = { jobs: "(i * 7919) % 1000003", events: "(i * 7919) % 100000007" };
const NOW = "2026-01-01T00:00:00.000Z";
const CONFIG = JSON.stringify({ learning_rate: 1e-5, note: "c".repeat(400) });
const REPORT = JSON.stringify({ sequences: 64, tokens: 65_536, note: "r".repeat(600) });
const METRICS = JSON.stringify({ "train/loss": 0.1234567, "train/grad_norm": 1.25, note: "m".repeat(200) });

const NUMBERS = `(WITH RECURSIVE n(i) AS (
    SELECT CAST(?1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < CAST(?2 AS BIGINT)
  ) SELECT i FROM n) AS numbers`;

const JOBS = `INSERT INTO jobs (id, model_id, owner, kind, status, progress, config, attempts, from_step, to_step, report,
    training_start, training_end, created_at, updated_at)
  SELECT 'job-' || CAST(${SCATTER.jobs} AS TEXT), 'model-' || CAST(i % ${MODELS} AS TEXT),
    CASE WHEN i % 2 = 0 THEN '${OWNER}' ELSE 'owner-' || CAST(i % ${MODELS} AS TEXT) END, 'rl',
    CASE WHEN i % 100 = 0 THEN 'FAILED' ELSE 'COMPLETED' END, 1, '${CONFIG}', 1, 0, 1, '${REPORT}',
    '${NOW}', '${NOW}', '${NOW}', '${NOW}'
  FROM ${NUMBERS}`;

/** The first hundredth belongs to job 1, the others to all jobs in turn. */
const EVENTS = `INSERT INTO job_events (id, job_id, type, data, created_at)
  SELECT 'event-' || CAST(${SCATTER.events} AS TEXT),
    'job-' || CAST(((CASE WHEN i <= CAST(?3 AS BIGINT) / 100 THEN 1 ELSE 1 + i % CAST(?4 AS BIGINT) END) * 7919) % 1000003 AS TEXT),
    'gradient_step', '${METRICS}', '${NOW}'
  FROM ${NUMBERS}`;

export async function fill(store: Store, { jobs, events }: Filling): Promise<void> {
  for (let from = 1; from <= jobs; from += CHUNK) await store.run(JOBS, from, Math.min(from + CHUNK - 1, jobs));
  for (let from = 1; from <= events; from += CHUNK) {
    await store.run(EVENTS, from, Math.min(from + CHUNK - 1, events), events, jobs);
  }
}

/** The few rows that every measurement needs, in full tables and in empty ones. */
export async function addKnown(store: Store): Promise<Known> {
  const { secret } = await new TokenStore(store).create({ name: "bench", scopes: ["inference"], lifetime: null });
  const { modelTable } = tablesOn(store);
  for (let i = 0; i < MODELS; i++) {
    const own = i % 2 === 0 ? OWNER : `owner-${i}`;
    const [id, name] = [`model-${i}`, `policy-${i}`];
    const names = { owner: own, entity: "team", project: "games", name };
    await modelTable.insert({ id, ...names, baseModel: "base", loraRank: 8, loraAlpha: 16, nextStep: 0 });
  }
  await store.transaction(async (tx) => {
    for (let step = 0; step < STEPS; step++) {
      const files = { folder: `step-${step}`, bytes: 1000, digest: "" };
      await tablesOn(tx).modelTable.insertStep("model-0", step, null, files, {});
    }
  });
  return { secret, owner: OWNER, model: { id: "model-0", name: "policy-0" }, longJob: "job-7919" };
}

/** Jobs that wait, each of a model of its own. */
export async function addWaiting(store: Store, count: number): Promise<void> {
  await store.transaction(async (tx) => {
    for (let i = 0; i < count; i++) await addJob(tx, `waiting-${randomUUID()}`);
  });
}

/** A model with a long past whose next jobs wait for the one that runs. A claim must pass over them. */
export async function addBusyModel(store: Store, past: number, waiting: number): Promise<void> {
  const model = "busy";
  await store.transaction(async (tx) => {
    for (let i = 0; i < past + waiting + 1; i++) await addJob(tx, model);
  });
  const oldest = "SELECT seq FROM jobs WHERE model_id = ?1 ORDER BY seq";
  await store.run(`UPDATE jobs SET status = 'COMPLETED' WHERE seq IN (${oldest} LIMIT ?2)`, model, past);
  await store.run(`UPDATE jobs SET status = 'RUNNING' WHERE seq = (${oldest} LIMIT 1 OFFSET ?2)`, ...[model, past]);
}

async function addJob(sql: Parameters<typeof tablesOn>[0], modelId: string): Promise<void> {
  const rest = { owner: OWNER, kind: "rl" as const, config: CONFIG, idempotencyKey: null, requestHash: null };
  await tablesOn(sql).jobTable.insert({ id: randomUUID(), modelId, openBytes: 0, recordBytes: 0, ...rest });
}
