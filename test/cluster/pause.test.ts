// A worker stands still for longer than its lease (SIGSTOP), another one takes its job over, and then it wakes up
// (SIGCONT). Its trainer, a process of its own, goes on meanwhile.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Chance } from "./chance.ts";
import { Deployment } from "./deployment.ts";
import { Learner } from "./learner.ts";
import type { Member } from "./member.ts";

let deployment: Deployment;
let learner: Learner;
/** While it exists, trainers stay between their first two steps. */
let hold: string;
beforeEach(async () => {
  hold = join(mkdtempSync(join(tmpdir(), "held-")), "hold");
  const env = { FAKE_TRAINER_HELD_BY: hold };
  deployment = await Deployment.start({ names: ["api-1", "worker-1", "worker-2"], env });
  learner = await Learner.register("agent", deployment.requests, new Chance(1), 4);
});
afterEach(() => deployment.close());

/** The worker that runs the job. */
async function holderOf(jobId: string): Promise<Member> {
  const sql = "SELECT address FROM servers JOIN jobs ON jobs.worker = servers.id WHERE jobs.id = ?1";
  const row = await deployment.store.get<{ address: string }>(sql, jobId);
  return deployment.members.find(({ url }) => url === row?.address)!;
}

/** Names of the folders of the model: those of its steps, and what is being made. */
function folders(): string[] {
  const place = join(deployment.storage, "models", learner.id);
  const names = existsSync(place) ? readdirSync(place) : [];
  return names.filter((name) => name !== "curves").sort();
}

/** All that a worker can change: rows and files. */
async function everything(jobId: string) {
  const { store } = deployment;
  return {
    job: await store.get<{ status: string }>(
      "SELECT status, epoch, attempts, to_step, updated_at FROM jobs WHERE id = ?1",
      jobId,
    ),
    events: await store.all("SELECT seq, type, data FROM job_events ORDER BY seq"),
    steps: await store.all("SELECT step, folder, digest, job_id FROM steps ORDER BY step"),
  };
}

/** Wakes it up after another worker has made the step, and waits until it has noticed. */
async function wake(asleep: Member, jobId: string, step: number): Promise<void> {
  expect(await learner.ended(jobId)).toMatchObject({ status: "COMPLETED" });
  const before = await everything(jobId);
  expect(before).toMatchObject({ job: { attempts: 2, to_step: step } });
  asleep.resume();
  await expect.poll(() => readFileSync(asleep.log, "utf8")).toContain("training job dropped");
  expect(await everything(jobId)).toEqual(before);
  // its own files are gone, those of the other one are not
  await expect.poll(folders).toHaveLength(step + 1);
  // and it goes on as any other worker
  await learner.learn();
  const steps = Array.from({ length: step + 2 }, (_, each) => expect.stringMatching(`^step-${each}-`));
  expect(folders()).toEqual(steps);
  expect(await deployment.finish(learner.accepted)).toEqual([]);
}

it("publishes nothing when it was paused in the middle of training", async () => {
  writeFileSync(hold, "");
  const jobId = await learner.submit();
  const sql = "SELECT 1 AS found FROM job_events WHERE job_id = ?1 AND type = 'gradient_step'";
  await expect.poll(() => deployment.store.get(sql, jobId)).toBeTruthy();
  const asleep = await holderOf(jobId);
  asleep.pause();
  rmSync(hold);
  await wake(asleep, jobId, 1);
});

it("publishes nothing when it was paused between the files and the row of a step", async () => {
  const { faults } = deployment.proxy;
  // each statement takes long, so that the row comes well after the files
  faults.delay = 30;
  // a machine that stops for a moment may miss it
  for (let step = 1; ; step++) {
    const jobId = await learner.submit();
    await expect.poll(() => holderOf(jobId)).toBeTruthy();
    const asleep = await holderOf(jobId);
    while (!folders().some((name) => name.startsWith(`step-${step}-`))) await sleep(2);
    asleep.pause();
    const { job } = await everything(jobId);
    if (job?.status === "RUNNING") {
      faults.delay = 0;
      return wake(asleep, jobId, step);
    }
    asleep.resume();
    expect(await learner.ended(jobId)).toMatchObject({ status: "COMPLETED" });
  }
});
