// What happens to the fleet: servers are killed and paused, connections to the database are cut, and the database crashes.

import { setTimeout as sleep } from "node:timers/promises";
import type { Chance } from "../cluster/chance.ts";
import type { Member } from "../cluster/member.ts";
import type { PostgresProxy } from "../postgres/postgres-proxy.ts";
import type { TestPostgres } from "../postgres/start-postgres.ts";

export interface Victims {
  members: readonly Member[];
  postgres: TestPostgres;
  proxy: PostgresProxy;
  /** Milliseconds that a job stays with a server that is not heard of. */
  leaseMs: number;
  say(what: string): void;
}

/** Milliseconds between two faults. */
const PAUSE = [500, 3000] as const;

/** How often each happens. */
const WEIGHTS = {
  "kill -9": 6,
  "short pause": 2,
  "pause past the lease": 3,
  "cut before COMMIT": 3,
  "cut after COMMIT": 3,
  "cut all connections": 1,
  "database away": 1,
  "database restarts": 2,
};

/** Causes faults until it is told to stop, at most `most`. Then puts everything right again. Returns how many there were. */
export async function causeFaults(
  victims: Victims,
  chance: Chance,
  most: number,
  over: () => boolean,
): Promise<number> {
  const running = new Set<Promise<void>>();
  let restarting = false;
  let count = 0;
  while (!over() && count < most) {
    await sleep(chance.between(...PAUSE));
    const fault = chance.weighted(WEIGHTS);
    const member = chance.pick(victims.members);
    const ms = chance.between(100, 2000);
    const onMember = ["kill -9", "short pause", "pause past the lease"].includes(fault);
    if (onMember ? member.busy : restarting && fault.startsWith("database")) continue;
    count += 1;
    if (onMember) member.busy = true;
    if (fault.startsWith("database")) restarting = true;
    const run = cause(fault, member, ms, victims).finally(() => {
      if (onMember) member.busy = false;
      if (fault.startsWith("database")) restarting = false;
      running.delete(run);
    });
    running.add(run);
  }
  await Promise.all(running);
  victims.proxy.commitFaults.length = 0;
  return count;
}

async function cause(fault: keyof typeof WEIGHTS, member: Member, ms: number, victims: Victims): Promise<void> {
  const { proxy, postgres, leaseMs, say } = victims;
  switch (fault) {
    case "kill -9":
      say(`${member.name}: kill -9, starts again after ${ms} ms`);
      await member.kill();
      await sleep(ms);
      await member.start();
      return say(`${member.name}: serves again`);
    case "short pause":
    case "pause past the lease": {
      const paused = fault === "short pause" ? ms : leaseMs + 1000 + ms;
      say(`${member.name}: SIGSTOP for ${paused} ms`);
      member.pause();
      await sleep(paused);
      return member.resume();
    }
    case "cut before COMMIT":
    case "cut after COMMIT":
      say(`database: the next COMMIT loses its connection ${fault === "cut before COMMIT" ? "before" : "after"} it`);
      proxy.commitFaults.push(fault === "cut before COMMIT" ? "before" : "after");
      return;
    case "cut all connections":
      say("database: all connections are cut");
      return proxy.faults.cutAll();
    case "database away":
      say(`database: unreachable for ${ms} ms`);
      proxy.faults.refuse = true;
      proxy.faults.cutAll();
      await sleep(ms);
      proxy.faults.refuse = false;
      return;
    case "database restarts":
      say("database: restart immediate");
      await postgres.restart("immediate");
      return say("database: accepts connections again");
  }
}
