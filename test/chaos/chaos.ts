// A fleet of two API servers and two workers on one PostgreSQL and one folder, to which bad things happen while clients use
// it. At the end everything settles and the invariants hold.

import { mkdirSync, mkdtempSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openPostgres } from "../../src/store/open-postgres.ts";
import type { Store } from "../../src/store/store.ts";
import { startPostgresProxy } from "../postgres/postgres-proxy.ts";
import { startPostgres } from "../postgres/start-postgres.ts";
import { violations } from "../training-invariants/violations.ts";
import { Chance } from "./chance.ts";
import { Client } from "./client.ts";
import { causeFaults } from "./faults.ts";
import { Member, ROOT } from "./member.ts";
import { Requests } from "./requests.ts";

export interface ChaosOptions {
  seed: number;
  /** Ends when this much time has passed, or after so many faults. */
  ms: number;
  faults: number;
  say(what: string): void;
}

export interface ChaosReport {
  /** What is wrong, one sentence each. */
  wrong: string[];
  faults: number;
  jobs: Record<string, number>;
  actions: Record<string, number>;
  repeatedRequests: number;
  /** Replies of 500 or more, by status. */
  serverErrors: Record<string, number>;
  /** Policies whose replies were compared at the end. */
  comparedPolicies: number;
  /** Logs and files of the servers. Remove it. */
  folder: string;
}

const KEY = "chaos";
const CLIENTS = 3;
const LEASE_MS = 3_000;
/** What a killed worker was writing stays this long, in case that it is only slow. */
const LEFTOVER_MS = 3_600_000;
/** Jobs that are open when the faults end must end in this time. */
const SETTLE_MS = 300_000;

export async function chaos({ seed, ms, faults, say }: ChaosOptions): Promise<ChaosReport> {
  const folder = mkdtempSync(join(tmpdir(), "flywheel-chaos-"));
  const storage = join(folder, "storage");
  mkdirSync(storage);
  const postgres = await startPostgres();
  const members: Member[] = [];
  try {
    const url = await postgres.createDatabase();
    const proxy = await startPostgresProxy(url);
    for (const name of ["api-1", "api-2", "worker-1", "worker-2"]) {
      const data = join(folder, name);
      mkdirSync(data);
      members.push(await member(name, folder, ["--data", data, "--storage", storage, "--database", proxy.url]));
    }
    await Promise.all(members.map((one) => one.start()));
    say(`seed ${seed}: ${members.map(({ name }) => name).join(", ")} serve`);
    const chance = new Chance(seed);
    const requests = new Requests(
      members.filter(({ role }) => role === "api").map(({ url }) => url),
      KEY,
    );
    const clients = Array.from(
      { length: CLIENTS },
      (_, i) => new Client(`client-${i + 1}`, requests, new Chance(seed + 1 + i)),
    );
    const end = Date.now() + ms;
    let ended = false;
    const lost: string[] = [];
    const traffic = Promise.all(
      clients.map((client) => client.run(() => ended).catch((error: Error) => lost.push(error.message))),
    );
    const victims = { members, postgres, proxy, leaseMs: LEASE_MS, say };
    const caused = await causeFaults(victims, chance, faults, () => Date.now() >= end);
    ended = true;
    say(`${caused} faults; settling`);
    await within(SETTLE_MS, traffic).catch((error: Error) => lost.push(error.message));
    const store = await openPostgres(url);
    try {
      const wrong = [...lost, ...(await settled(store, SETTLE_MS))];
      let comparedPolicies = 0;
      for (const client of clients) comparedPolicies += await client.askAgain();
      for (const one of members) {
        const code = await one.stop();
        if (code !== 0) wrong.push(`${one.name} ended with ${code} when asked to stop: ${one.tail()}`);
        if (one.surprise !== null) wrong.push(`${one.surprise}: ${one.tail()}`);
      }
      wrong.push(...clients.flatMap((client) => client.wrong));
      const accepted = clients.flatMap((client) => [...client.accepted]);
      const evidence = { store, folder: storage, accepted, serverErrors: requests.serverErrors, graceMs: LEFTOVER_MS };
      wrong.push(...(await violations(evidence)));
      wrong.push(...(await unjustified(store)));
      const rows = await store.all<{ status: string; count: number }>(
        "SELECT status, CAST(COUNT(*) AS BIGINT) AS count FROM jobs GROUP BY status ORDER BY status",
      );
      return {
        wrong,
        faults: caused,
        jobs: Object.fromEntries(rows.map(({ status, count }) => [status, count])),
        actions: sum(clients.map((client) => client.done)),
        repeatedRequests: requests.repeated,
        serverErrors: sum(requests.serverErrors.map(({ status }) => ({ [status]: 1 }))),
        comparedPolicies,
        folder,
      };
    } finally {
      await store.close();
    }
  } finally {
    for (const one of members) {
      one.resume();
      await one.kill();
    }
    await postgres.stop();
  }
}

async function member(name: string, logFolder: string, args: readonly string[]): Promise<Member> {
  const role = name.startsWith("api") ? "api" : "worker";
  const trainer = `${process.execPath} ${join(ROOT, "test/fakes/trainer-process.mjs")}`;
  const common = [
    ...["--model", join(ROOT, "test/fixtures/llama"), "--served-model-name", "tiny", "--dtype", "float32"],
    ...["--trainer", "torch", "--trainer-dtype", "float32", "--trainer-command", trainer],
    ...["--api-key", KEY, "--threads", "1", "--lora-rank", "4", "--lora-alpha", "8"],
    ...["--job-lease", String(LEASE_MS / 1000), "--step-grace", "0", "--log-level", "info"],
  ];
  const env = { FAKE_TRAINER_STEP_MS: "100" };
  return new Member({ name, role, port: await freePort(), args: [...common, ...args], env, logFolder });
}

/** Waits until no job is open. */
async function settled(store: Store, limitMs: number): Promise<string[]> {
  const limit = Date.now() + limitMs;
  for (;;) {
    const open = await store.all<{ id: string; status: string; attempts: number }>(
      "SELECT id, status, attempts FROM jobs WHERE status IN ('PENDING', 'RUNNING')",
    );
    if (open.length === 0) return [];
    if (Date.now() > limit) {
      return open.map(({ id, status, attempts }) => `job ${id} is still ${status} after ${attempts} attempts`);
    }
    await sleep(200);
  }
}

/** Nothing is wrong with any job, so none fails, except one that ran whenever a worker was lost. */
async function unjustified(store: Store): Promise<string[]> {
  const failed = await store.all<{ id: string; why: string | null }>(
    `SELECT id, error_message AS why FROM jobs WHERE status = 'FAILED'`,
  );
  return failed
    .filter(({ why }) => !why?.startsWith("the server stopped"))
    .map(({ id, why }) => `job ${id} failed: ${why}`);
}

async function within<R>(ms: number, work: Promise<R>): Promise<R> {
  const stop = new AbortController();
  const late = sleep(ms, undefined, { signal: stop.signal }).then(() =>
    Promise.reject(new Error(`a client was not done ${ms / 1000} s after the last fault`)),
  );
  late.catch(() => {});
  try {
    return await Promise.race([work, late]);
  } finally {
    stop.abort();
  }
}

function sum(counts: readonly Record<string, number>[]): Record<string, number> {
  const total: Record<string, number> = {};
  for (const one of counts) for (const [name, count] of Object.entries(one)) total[name] = (total[name] ?? 0) + count;
  return total;
}

function freePort(): Promise<number> {
  const server = createServer();
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
