// A fleet of two API servers and two workers on one PostgreSQL and one folder, to which bad things happen while clients use
// it. At the end everything settles and the invariants hold.

import { setTimeout as sleep } from "node:timers/promises";
import type { Store } from "../../src/store/store.ts";
import { Chance } from "../cluster/chance.ts";
import { Deployment, LEASE_MS } from "../cluster/deployment.ts";
import { Client } from "./client.ts";
import { causeFaults } from "./faults.ts";

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
  gradientSteps: number;
  actions: Record<string, number>;
  repeatedRequests: number;
  /** Replies of 500 or more, by status. */
  serverErrors: Record<string, number>;
  /** Policies whose replies were compared at the end. */
  comparedPolicies: number;
  /** Logs and files of the servers. Remove it. */
  folder: string;
}

const NAMES = ["api-1", "api-2", "worker-1", "worker-2"];
const CLIENTS = 3;
/** Jobs that clients follow when the faults end must end in this time. */
const PATIENCE_MS = 300_000;

export async function chaos({ seed, ms, faults, say }: ChaosOptions): Promise<ChaosReport> {
  const deployment = await Deployment.start({ names: NAMES });
  try {
    const { members, postgres, proxy, store, requests, folder } = deployment;
    say(`seed ${seed}: ${NAMES.join(", ")} serve`);
    const clients = Array.from(
      { length: CLIENTS },
      (_, i) => new Client(`client-${i + 1}`, requests, new Chance(seed + 1 + i)),
    );
    const end = Date.now() + ms;
    let ended = false;
    const wrong: string[] = [];
    const traffic = Promise.all(
      clients.map((client) => client.run(() => ended).catch((error: Error) => wrong.push(error.message))),
    );
    const victims = { members, postgres, proxy, leaseMs: LEASE_MS, say };
    const caused = await causeFaults(victims, new Chance(seed), faults, () => Date.now() >= end);
    ended = true;
    say(`${caused} faults; settling`);
    await within(PATIENCE_MS, traffic).catch((error: Error) => wrong.push(error.message));
    wrong.push(...(await deployment.settle()));
    let comparedPolicies = 0;
    for (const client of clients) comparedPolicies += await client.askAgain();
    wrong.push(...clients.flatMap((client) => client.wrong));
    wrong.push(...(await deployment.finish(clients.flatMap((client) => [...client.accepted]))));
    wrong.push(...(await unjustified(store)));
    const rows = await store.all<{ status: string; count: number }>(
      "SELECT status, CAST(COUNT(*) AS BIGINT) AS count FROM jobs GROUP BY status ORDER BY status",
    );
    const steps = await store.get<{ count: number }>(
      "SELECT CAST(COUNT(*) AS BIGINT) AS count FROM job_events WHERE type = 'gradient_step'",
    );
    return {
      wrong,
      faults: caused,
      jobs: Object.fromEntries(rows.map(({ status, count }) => [status, count])),
      gradientSteps: steps!.count,
      actions: sum(clients.map((client) => client.done)),
      repeatedRequests: requests.repeated,
      serverErrors: sum(requests.serverErrors.map(({ status }) => ({ [status]: 1 }))),
      comparedPolicies,
      folder,
    };
  } finally {
    await deployment.close({ files: false });
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
