// Servers are killed at random moments while two workers train. FLYWHEEL_TEST_KILLS=100 kills more of them, and
// FLYWHEEL_TEST_SEED chooses other moments.

import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { Chance } from "./chance.ts";
import { Deployment } from "./deployment.ts";
import { Learner } from "./learner.ts";
import type { Member } from "./member.ts";

const KILLS = Number(process.env.FLYWHEEL_TEST_KILLS ?? 6);
const SEED = Number(process.env.FLYWHEEL_TEST_SEED ?? 24);
/** From one kill to the next: so many events of jobs, and then so many milliseconds. */
const EVENTS = [1, 12] as const;
const PAUSE = [0, 300] as const;

it(`${KILLS} kills of two workers, and some of API servers, change nothing that clients get (seed ${SEED})`, async () => {
  const deployment = await Deployment.start({ names: ["api-1", "api-2", "worker-1", "worker-2"], stepMs: 50 });
  try {
    const { requests, store } = deployment;
    const learners: Learner[] = [];
    for (const name of ["a", "b", "c"]) {
      learners.push(await Learner.register(name, requests, new Chance(SEED + 1 + learners.length)));
    }
    let over = false;
    const ends = () => {
      over = true;
    };
    const learn = async (learner: Learner) => {
      while (!over) await learner.learn();
    };
    const work = [killAll(deployment, new Chance(SEED), () => over), ...learners.map(learn)];
    const results = await Promise.allSettled(work.map((one) => one.finally(ends)));
    expect(results.filter(({ status }) => status === "rejected")).toEqual([]);

    // one that nothing happens to learns the same
    const undisturbed = await Learner.register("undisturbed", requests, new Chance(SEED));
    while (undisturbed.learnt < Math.max(...learners.map(({ learnt }) => learnt))) await undisturbed.learn();
    const expected = await undisturbed.digests(store);
    expect(new Set(expected).size).toBe(expected.length);
    for (const learner of learners) {
      expect(learner.learnt).toBeGreaterThan(0);
      expect(await learner.digests(store), learner.name).toEqual(expected.slice(0, learner.learnt + 1));
    }
    const accepted = [...learners, undisturbed].flatMap((learner) => learner.accepted);
    expect(await deployment.finish(accepted)).toEqual([]);
    const sql = "SELECT CAST(COUNT(*) AS BIGINT) AS count FROM jobs WHERE attempts > 1";
    // kills met jobs that ran
    expect((await store.get<{ count: number }>(sql))!.count).toBeGreaterThan(0);
  } finally {
    await deployment.close();
  }
});

/** Kills a worker so many times, and with every fifth of them an API server. Each starts again at once. */
async function killAll(deployment: Deployment, chance: Chance, over: () => boolean): Promise<void> {
  const starting = new Map<Member, Promise<void>>();
  const kill = async (members: readonly Member[]) => {
    const serving = members.filter((member) => !starting.has(member));
    if (serving.length === 0) return false;
    const victim = chance.pick(serving);
    await victim.kill();
    const start = victim.start().finally(() => starting.delete(victim));
    starting.set(victim, start);
    return true;
  };
  const countEvents = async () => {
    const sql = "SELECT CAST(COUNT(*) AS BIGINT) AS count FROM job_events";
    return (await deployment.store.get<{ count: number }>(sql))!.count;
  };
  for (let kills = 0; kills < KILLS && !over(); ) {
    const next = (await countEvents()) + chance.between(...EVENTS);
    while (!over() && (await countEvents()) < next) await sleep(20);
    await sleep(chance.between(...PAUSE));
    if (!(await kill(deployment.role("worker")))) continue;
    kills += 1;
    if (kills % 5 === 0) await kill(deployment.role("api"));
  }
  await Promise.all(starting.values());
}
