// Keeping the record of a job: how long it stays, and using its data again.

import { existsSync, mkdirSync, readdirSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { folderBytes } from "../../../src/training/files/step-folders.ts";
import { shared } from "../../support/shared-server.ts";
import { ended } from "../../support/training-service.ts";
import { finishedJob, goodGroup, group, jobBody, modelBody, newModel, trajectory } from "./training-requests.ts";
import { startTrainingServer, type TrainingServer } from "./training-server.ts";

const JOBS = "/v1/preview/training-jobs";
const SFT_JOBS = "/v1/preview/sft-training-jobs";

const server = shared(() => startTrainingServer({ maxOpenJobs: 1000 }));

async function run(body: unknown, path = JOBS, on: TrainingServer = server) {
  const { status, json } = await on.call("POST", path, body);
  expect(status).toBe(200);
  return finishedJob(on, json.id);
}

const folderOf = (on: TrainingServer, modelId: string) => join(on.bench.folder, "training", "records", modelId);

describe("how long a record stays", () => {
  const tidy = (on: TrainingServer) => on.bench.service.tidyRecords();

  it("goes when it is too old or there are too many, the oldest first; the job stays", async () => {
    const { id: measured } = await newModel(server);
    const { id: one } = await run(jobBody(measured));
    const bytes = 2.5 * folderBytes(join(folderOf(server, measured), one));
    const small = await startTrainingServer({ keepRecords: { bytes, ms: 1000_000 } });
    try {
      const { id } = await newModel(small);
      const jobs = [];
      for (let i = 0; i < 4; i++) {
        const job = await run(jobBody(id), JOBS, small);
        jobs.push(job);
        const at = new Date(Date.now() - (4 - i) * 1000);
        for (const name of ["sent", "prepared"]) utimesSync(join(folderOf(small, id), job.id, name), at, at);
      }
      const old = new Date(Date.now() - 1000_001);
      utimesSync(join(folderOf(small, id), jobs[3].id, "sent"), old, old);
      await tidy(small);
      const statuses = [];
      for (const job of jobs) statuses.push((await small.call("GET", `${JOBS}/${job.id}/groups`)).status);
      expect(statuses).toEqual([410, 200, 200, 410]);
      const gone = await small.call("GET", `${JOBS}/${jobs[0].id}/groups/0/trajectories/0`);
      expect(gone.json.error).toMatchObject({ code: 410, message: expect.stringMatching(/--keep-trajectories/) });
      expect((await small.call("POST", JOBS, { from_job: jobs[0].id, dry_run: true })).status).toBe(410);
      expect((await small.call("GET", `${JOBS}/${jobs[0].id}`)).json.report.trajectories).toHaveLength(2);
    } finally {
      await small.close();
    }
  });

  it("is bounded for each workspace by itself, and counts in its account", async () => {
    const { id: measured } = await newModel(server);
    const { id: one } = await run(jobBody(measured));
    const bytes = 1.5 * folderBytes(join(folderOf(server, measured), one));
    const small = await startTrainingServer({ keepRecords: { bytes, ms: 1000_000 } });
    try {
      const { id } = await newModel(small);
      const theirs = (await small.call("POST", "/v1/preview/models", modelBody(), { as: "bob" })).json.id;
      const job = await run(jobBody(id), JOBS, small);
      for (let i = 0; i < 3; i++) {
        const { json } = await small.call("POST", JOBS, jobBody(theirs), { as: "bob" });
        await ended(small.bench, json);
      }
      const used = async (owner: string) => (await small.bench.service.account(owner)).use.records;
      expect(await used("1")).toBe(folderBytes(join(folderOf(small, id), job.id)));
      expect(await used("b")).toBeGreaterThan(bytes);
      await tidy(small);
      expect((await small.call("GET", `${JOBS}/${job.id}/groups`)).status).toBe(200);
      const left = readdirSync(folderOf(small, theirs));
      expect(left).toHaveLength(1);
      expect(await used("b")).toBe(folderBytes(join(folderOf(small, theirs), left[0]!)));
      expect(await used("1")).toBe(folderBytes(join(folderOf(small, id), job.id)));
    } finally {
      await small.close();
    }
  });

  it("is not kept at all with a bound of 0", async () => {
    const none = await startTrainingServer({ keepRecords: { bytes: 0, ms: 1000 } });
    try {
      const { id } = await newModel(none);
      const job = await run(jobBody(id), JOBS, none);
      expect((await none.call("GET", `${JOBS}/${job.id}/groups`)).status).toBe(410);
      expect(existsSync(join(none.bench.folder, "training", "records"))).toBe(false);
    } finally {
      await none.close();
    }
  });

  it("goes with its model, and is not made for a dry run or a refused body", async () => {
    const { id } = await newModel(server);
    const job = await run(jobBody(id));
    expect(readdirSync(folderOf(server, id))).toEqual([job.id]);
    await server.call("POST", JOBS, jobBody(id, [goodGroup()], { dry_run: true }));
    await server.call("POST", JOBS, jobBody(id, [goodGroup(), { trajectories: [{ reward: "x" }] }]));
    const headers = { "idempotency-key": "k" };
    const first = (await server.call("POST", JOBS, jobBody(id), { headers })).json;
    const second = (await server.call("POST", JOBS, jobBody(id), { headers })).json;
    expect(second.id).toBe(first.id);
    await finishedJob(server, first.id);
    expect(readdirSync(folderOf(server, id)).sort()).toEqual([job.id, first.id].sort());
    await server.call("DELETE", `/v1/preview/models/${id}`);
    expect(existsSync(folderOf(server, id))).toBe(false);
  });

  it("is not served half written, and what belongs to no job goes", async () => {
    const { id } = await newModel(server);
    const job = await run(jobBody(id));
    const folder = join(folderOf(server, id), job.id);
    truncateSync(join(folder, "prepared"), 40);
    expect((await server.call("GET", `${JOBS}/${job.id}/groups`)).json.data[0]).toMatchObject({ verdicts: {} });
    truncateSync(join(folder, "sent"), 40);
    expect((await server.call("GET", `${JOBS}/${job.id}/groups`)).status).toBe(410);
    const stray = join(folderOf(server, id), "0f0f0f0f-0000-4000-8000-000000000000");
    const fresh = join(folderOf(server, id), "0f0f0f0f-0000-4000-8000-000000000001");
    for (const path of [stray, fresh]) {
      mkdirSync(path);
      writeFileSync(join(path, "sent"), "half");
    }
    const old = new Date(Date.now() - 7200_000);
    utimesSync(join(stray, "sent"), old, old);
    await tidy(server);
    expect([stray, fresh, folder].map((path) => existsSync(path))).toEqual([false, true, true]);
  });
});

describe("using the data of a job again", () => {
  it("gives the dry run of the same body, with the job's settings or others", async () => {
    const { id } = await newModel(server);
    const groups = [group(trajectory("a1 <e>", 1), trajectory("a2 a3 <e>", 0), trajectory("a1", 0.5)), goodGroup()];
    const experimental_config = { scale_rewards: false, learning_rate: 1e-4 };
    const dry = (await server.call("POST", JOBS, jobBody(id, groups, { experimental_config, dry_run: true }))).json;
    const job = await run(jobBody(id, groups, { experimental_config }));
    const again = (await server.call("POST", JOBS, { from_job: job.id.toUpperCase(), dry_run: true })).json;
    expect(again).toEqual({ ...dry, from_step: 1 });
    const config = { advantage_balance: 0.5 };
    const other = (await server.call("POST", JOBS, { from_job: job.id, dry_run: true, config })).json;
    const body = jobBody(id, groups, { experimental_config: config, dry_run: true });
    expect(other).toEqual((await server.call("POST", JOBS, body)).json);
    expect(other.trajectories[0].advantage).not.toEqual(again.trajectories[0].advantage);
  });

  it("takes other rewards for some trajectories, and keeps them with the new job", async () => {
    const { id } = await newModel(server);
    const made = (reward: number) => [group(trajectory("a1 <e>", reward), trajectory("a2 <e>", 1)), goodGroup()];
    const job = await run(jobBody(id, made(1)));
    const rewards = [{ group: 0, trajectory: 0, reward: 0.25 }];
    const dry = (await server.call("POST", JOBS, { from_job: job.id, dry_run: true, rewards })).json;
    expect(dry).toEqual((await server.call("POST", JOBS, jobBody(id, made(0.25), { dry_run: true }))).json);
    const again = await run({ from_job: job.id, rewards });
    const { json: list } = await server.call("GET", `${JOBS}/${again.id}/groups`);
    expect(list.data.map((row: { rewards: number[] }) => row.rewards)).toEqual([
      [0.25, 1],
      [1, 0],
    ]);
    const { json: kept } = await server.call("GET", `${JOBS}/${again.id}/groups/0/trajectories/0`);
    expect(kept).toMatchObject({ reward: 0.25, metadata: { scenario_id: "s" } });
    for (const [wrong, reason] of [
      [[{ group: 0, trajectory: 2, reward: 1 }], /no trajectory 2 in group 0/],
      [[{ group: 0, trajectory: 0, reward: "1" }], /rewards/],
    ] as const) {
      const { status, json } = await server.call("POST", JOBS, { from_job: job.id, rewards: wrong });
      expect({ status, message: json.error.message }).toMatchObject({
        status: 422,
        message: expect.stringMatching(reason),
      });
    }
  });

  it("trains it once more, on another model, with a record of its own", async () => {
    const { id } = await newModel(server);
    const { id: other } = await newModel(server);
    const job = await run(jobBody(id));
    const again = await run({ from_job: job.id, model_id: other });
    expect(again).toMatchObject({ status: "COMPLETED", model_id: other, report: { totals: job.report.totals } });
    const [one, two] = await Promise.all(
      [job, again].map(async (of) => (await server.call("GET", `${JOBS}/${of.id}/groups`)).json.data),
    );
    expect(two).toEqual(one);
  });

  it("takes examples again, and says what does not fit", async () => {
    const { id } = await newModel(server);
    const messages = [
      { role: "user", content: "q1" },
      { role: "assistant", content: "yes" },
    ];
    const sft = await run({ model_id: id, training_data: [{ messages }] }, SFT_JOBS);
    const dry = (await server.call("POST", SFT_JOBS, { from_job: sft.id, dry_run: true })).json;
    expect(dry.examples).toMatchObject([{ status: "trained" }]);
    const refusal = async (path: string, body: object) => {
      const { status, json } = await server.call("POST", path, body);
      return `${status} ${json.error.message}`;
    };
    expect(await refusal(JOBS, { from_job: sft.id, dry_run: true })).toMatch(/^422 .*sft-training-jobs/);
    expect(await refusal(JOBS, { from_job: sft.id, trajectory_groups: [] })).toMatch(/^422 .*not both/);
    expect(await refusal(JOBS, { from_job: 7 })).toMatch(/^422 /);
    expect(await refusal(JOBS, { from_job: "0f0f0f0f-0000-4000-8000-000000000000" })).toMatch(/^404 /);
    expect(await refusal(JOBS, { from_job: sft.id, config: { learning_rate: "x" } })).toMatch(/^422 .*config/);
  });
});
