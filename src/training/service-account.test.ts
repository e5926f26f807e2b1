// One account of bytes per workspace: what counts, what is refused before it is written, and what a crash leaves.

import { existsSync, mkdtempSync, readdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  type BenchOptions,
  benchesOfTest,
  beside,
  ended,
  heldTrainer,
  jobFolders,
  newModel,
  scored,
  stepFolder,
  submit,
  type TrainingBench,
  trainingBench,
} from "../../test/support/training-service.ts";
import { totalOf } from "../store/tables/accounts.ts";
import { GroupLog } from "./data/group-metrics.ts";
import { TrainingError } from "./training-error.ts";

const start = benchesOfTest();
const newFolder = () => mkdtempSync(join(tmpdir(), "account-"));
afterEach(() => {
  vi.restoreAllMocks();
});

/** A service with one model, whose account has room for so many more bytes. */
async function withRoom(bytes: number, options: BenchOptions = {}) {
  const folder = newFolder();
  const bench = await trainingBench({ folder });
  const { id } = await newModel(bench);
  const used = await usedBy(bench);
  await bench.close();
  return { bench: await start({ ...options, folder, maxBytesPerOwner: used + bytes }), id, used };
}

const useOf = async (bench: TrainingBench, owner = "me") => (await bench.service.account(owner)).use;
const usedBy = async (bench: TrainingBench, owner = "me") => totalOf(await useOf(bench, owner));

/** All files below a folder, in bytes. */
function onDisk(folder: string): number {
  if (!existsSync(folder)) return 0;
  return readdirSync(folder, { withFileTypes: true }).reduce((sum, entry) => {
    const path = join(folder, entry.name);
    return sum + (entry.isDirectory() ? onDisk(path) : statSync(path).size);
  }, 0);
}

async function refused(work: Promise<unknown>): Promise<TrainingError<"too_many_bytes">["facts"]> {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(TrainingError);
  expect(error).toMatchObject({ code: "too_many_bytes" });
  return (error as TrainingError<"too_many_bytes">).facts;
}

const big = () => scored(...Array.from({ length: 400 }, (_, i) => ["a1 <e>", i % 2] as const));

describe("what counts", () => {
  it("steps, open jobs with what they will leave, reports; each workspace by itself", async () => {
    const { trainer, letGo } = heldTrainer();
    const bench = await start({ trainer });
    const model = await newModel(bench);
    const files = onDisk(stepFolder(bench, model.id, 0));
    expect(await useOf(bench)).toEqual({
      ...{ steps: files + 2, deleted: 0, openJobs: 0, gradients: 0, records: 0, results: 0, reserved: 0 },
    });
    const job = await submit(bench, model.id);
    const { openJobs } = await useOf(bench);
    const input = statSync(join(bench.folder, "training", "jobs", job.id, "submission.jsonl")).size;
    // an adapter and two moments of each parameter
    expect(openJobs).toBeGreaterThan(input + 3 * files - 20_000);
    letGo();
    await ended(bench, job);
    const after = await useOf(bench);
    expect(after).toMatchObject({ openJobs: 0, reserved: 0 });
    expect(after.steps).toBeGreaterThanOrEqual(files + onDisk(stepFolder(bench, model.id, 1)));
    expect(after.results).toBeGreaterThan(4096);
    expect(await usedBy(bench, "you")).toBe(0);
  });

  it("data that arrives, until it is discarded", async () => {
    const bench = await start();
    await newModel(bench);
    const before = await usedBy(bench);
    const draft = await bench.service.jobs.draft("me", { recorded: true });
    await draft.input.append(big());
    expect((await useOf(bench)).reserved).toBeGreaterThanOrEqual(draft.input.bytes);
    await bench.service.jobs.discard(draft);
    expect(await usedBy(bench)).toBe(before);
  });

  it("metrics that clients keep with a step", async () => {
    const bench = await start();
    const { id } = await newModel(bench);
    const before = await usedBy(bench);
    const log = new GroupLog();
    log.addGroup({
      ...scored(["a1 <e>", 1]),
      metrics: Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`m${i}`, i])),
    });
    await bench.service.models.log(id, "me", "val", log);
    expect(await usedBy(bench)).toBeGreaterThan(before + 500 * 6);
  });
});

describe("what has no room is refused before it is written", () => {
  it("new models, forks and rollbacks", async () => {
    const bench = await start({ maxBytesPerOwner: 10 });
    const facts = await refused(newModel(bench));
    expect(facts).toMatchObject({ used: 0, limit: 10 });
    expect(facts.more).toBeGreaterThan(10);
    expect(readdirSync(join(bench.folder, "training", "models"))).toEqual([]);

    const folder = newFolder();
    const large = await trainingBench({ folder });
    const { id } = await newModel(large);
    const maxBytesPerOwner = (await usedBy(large)) + 5000;
    await large.close();
    const small = await start({ folder, maxBytesPerOwner });
    const fork = { owner: "me", entity: "team", project: "demo", name: "fork", baseModel: null, returnExisting: false };
    await refused(small.service.models.create({ ...fork, from: { modelId: id, step: 0, owner: "me" } }));
    await refused(small.service.models.rollback(id, "me", 0));
    expect((await small.service.models.steps(id, "me")).map(({ step }) => step)).toEqual([0]);
    expect(readdirSync(join(small.folder, "training", "models"))).toEqual([id]);
    // another workspace has its own account
    await newModel(small, "agent", "you");
  });

  it("bodies, in the middle, also when they arrive together", async () => {
    const { bench, used } = await withRoom(20_000);
    const drafts = await Promise.all(Array.from({ length: 5 }, () => bench.service.jobs.draft("me")));
    const sent = await Promise.allSettled(
      drafts.map(async ({ input }) => {
        for (let i = 0; i < 20; i++) await input.append(scored(["a1 <e>", i]));
      }),
    );
    expect(sent.filter(({ status }) => status === "rejected").length).toBeGreaterThanOrEqual(3);
    expect(await usedBy(bench)).toBeLessThanOrEqual(used + 20_000);
    for (const draft of drafts) await bench.service.jobs.discard(draft);
    expect([await usedBy(bench), jobFolders(bench)]).toEqual([used, []]);
  });

  it("jobs whose steps would not fit, though none of them exists yet", async () => {
    const { trainer, letGo } = heldTrainer();
    const measured = await start({ trainer });
    const model = await newModel(measured);
    const first = await submit(measured, model.id);
    const perJob = (await useOf(measured)).openJobs;
    const { bench, id } = await withRoom(Math.floor(2.5 * perJob), { trainer });
    const jobs = [await submit(bench, id), await submit(bench, id)];
    const { openJobs } = await useOf(bench);
    expect((await refused(submit(bench, id))).used).toBeGreaterThanOrEqual(openJobs);
    expect((await useOf(bench)).openJobs).toBe(openJobs);
    expect(jobFolders(bench).sort()).toEqual(jobs.map((job) => job.id).sort());
    letGo();
    for (const job of jobs) expect((await ended(bench, job)).at(-1)!.type).toBe("training_ended");
    await ended(measured, first);
  });

  it("nothing that was promised to another server", async () => {
    const folder = newFolder();
    const server = (id: string) => ({ id, runsJobs: false, alone: false });
    const one = await start({ folder, server: server("one"), maxBytesPerOwner: 20_000_000 });
    const { store } = one;
    const two = await start({ folder, store, server: server("two"), maxBytesPerOwner: 20_000_000 });
    const benches = Array.from({ length: 16 }, (_, i) => (i % 2 === 0 ? one : two));
    const drafts = await Promise.all(benches.map((bench) => bench.service.jobs.draft("me")));
    const sent = await Promise.allSettled(drafts.map(({ input }) => input.append("x".repeat(1_500_000))));
    expect(sent.filter(({ status }) => status === "fulfilled").length).toBe(13);
    expect(await usedBy(one)).toBe(13 * 1_500_003);
    for (const [i, draft] of drafts.entries()) await benches[i]!.service.jobs.discard(draft);
    expect(await usedBy(two)).toBe(0);
  });

  it("the batch of a job: it fails and says why, its record stays as it was sent, nothing else is left", async () => {
    const { bench, id, used } = await withRoom(2_000_000_000);
    const wide = scored(...Array.from({ length: 300 }, (_, i) => ["a1 a2 a1 a2 <e>", i % 2] as const));
    const draft = await bench.service.jobs.draft("me");
    const { input } = draft;
    await input.append(wide);
    await bench.service.jobs.discard(draft);
    // so much that the data fits, and what the trainer reads does not
    const { trainer, letGo } = heldTrainer();
    await bench.close();
    const room = input.bytes + 150_000;
    const tight = await start({ folder: bench.folder, trainer, maxBytesPerOwner: used + room });
    letGo();
    const job = await submit(tight, id, [wide]);
    const last = (await ended(tight, job)).at(-1)!;
    expect(last).toMatchObject({ type: "training_failed" });
    expect(last.data.error_message).toMatch(/^This needs \d+ bytes, and the workspace uses \d+ of \d+: delete/);
    await expect.poll(() => jobFolders(tight)).toEqual([]);
    expect(await useOf(tight)).toMatchObject({ openJobs: 0, reserved: 0 });
  });
});

describe("a server that was killed", () => {
  it("leaves nothing reserved when it starts again", async () => {
    const folder = newFolder();
    const first = await trainingBench({ folder });
    await newModel(first);
    const used = await usedBy(first);
    const draft = await first.service.jobs.draft("me");
    await draft.input.append(big());
    expect(await usedBy(first)).toBeGreaterThan(used);
    // closing discards no draft, as a crash does not
    await first.close();
    const second = await start({ folder });
    expect([await usedBy(second), jobFolders(second)]).toEqual([used, []]);
    await draft.input.abandon();
  });

  it("has its reservations until others have cleared its files away", async () => {
    const folder = newFolder();
    const member = (id: string) => start({ folder, server: { id, runsJobs: false, alone: false } });
    const gone = await member("gone");
    const draft = await gone.service.jobs.draft("me");
    await draft.input.append(big());
    const bench = await member("here");
    await bench.service.tidyAccounts();
    expect(await usedBy(bench)).toBeGreaterThan(0);
    await beside(bench, (_tables, store) => store.run("UPDATE reservations SET until = until - 7200001"));
    await bench.service.tidyAccounts();
    expect(await usedBy(bench)).toBe(0);
    await draft.input.abandon();
  });

  it("keeps what is written, and drops what nobody holds", async () => {
    const bench = await start();
    const draft = await bench.service.jobs.draft("me");
    await draft.input.append(big());
    await beside(bench, ({ accountTable }) =>
      accountTable.reserve("stray", { owner: "me", server: "other", bytes: 5_000_000, ms: -1 }),
    );
    await bench.service.tidyAccounts();
    const used = await usedBy(bench);
    expect(used).toBeGreaterThanOrEqual(draft.input.bytes);
    expect(used).toBeLessThan(5_000_000);
    await bench.service.jobs.discard(draft);
  });
});
