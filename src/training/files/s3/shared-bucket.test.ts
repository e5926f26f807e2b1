import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { useS3 } from "../../../../test/s3/use-s3.ts";
import { StorageUnavailable } from "../../../errors/faults.ts";
import { createLog } from "../../../observe/log.ts";
import type { StepFiles } from "../../../store/tables/models.ts";
import type { KnownFiles } from "../leftovers.ts";
import { DamagedFiles } from "../shared-files.ts";
import { StepFolders } from "../step-folders.ts";
import { openBucket } from "./open-bucket.ts";
import { SharedBucket } from "./shared-bucket.ts";

const HOUR_MS = 3_600_000;
const MIB = 2 ** 20;
const s3 = useS3();
const log = createLog({ level: "error", format: "text" });

/** A server with an empty local folder, unless it is given one. */
async function server(options: { cacheBytes?: number; folder?: string; patienceMs?: number } = {}) {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), "s3-cache-"));
  const bucket = await openBucket({ bucket: s3().bucket, prefix: "p/" });
  const settings = { cacheBytes: 100 * MIB, folder, log, ...options };
  return { folder, workspace: new StepFolders(folder, new SharedBucket(bucket, settings)) };
}
type TestServer = Awaited<ReturnType<typeof server>>;

const FILES = { "adapter_config.json": "{}", "adapter_model.safetensors": "weights", "optimizer.safetensors": "state" };

function staged({ workspace }: TestServer, files: Record<string, string | Buffer> = FILES, model = "m"): string {
  const staging = workspace.newStaging(model, `${Math.random()}`);
  mkdirSync(staging);
  for (const [name, content] of Object.entries(files)) writeFileSync(join(staging, name), content);
  return staging;
}
const published = (one: TestServer, step = 1, files?: Record<string, string | Buffer>) =>
  one.workspace.publish(staged(one, files), "m", step);
const filesOf = (one: TestServer, { folder }: StepFiles) => {
  const path = one.workspace.stepFolder("m", folder);
  return existsSync(path) ? readdirSync(path).sort() : null;
};
const known = (folders: string[], more: Partial<KnownFiles> = {}): KnownFiles => ({
  models: new Map([["m", { folders: new Set(folders), nextStep: 3, interrupted: false }]]),
  jobs: new Set(["open"]),
  running: new Set(),
  gradients: new Set(),
  removed: new Set(),
  ...more,
});

it("another server gets a step from the bucket: first the adapter, then the rest, and nothing twice", async () => {
  const [one, other] = [await server(), await server()];
  const step = await published(one);
  expect(step.folder).toMatch(/^step-1-[0-9a-f]{64}$/);
  expect(step.bytes).toBe("{}weightsstate".length);
  expect(s3().keys()).toEqual(
    [...Object.keys(FILES), "manifest.json"].sort().map((name) => `p/models/m/${step.folder}/${name}`),
  );
  await one.workspace.fetchStep("m", step.folder, "all", {});
  expect(s3().requests.filter(({ method }) => method === "GET")).toEqual([]);

  await Promise.all([1, 2, 3].map(() => other.workspace.fetchStep("m", step.folder, "adapter", {})));
  expect(filesOf(other, step)).toEqual(["adapter_config.json", "adapter_model.safetensors"]);
  await other.workspace.fetchStep("m", step.folder, "all", {});
  await other.workspace.fetchStep("m", step.folder, "adapter", {});
  expect(filesOf(other, step)).toEqual(Object.keys(FILES).sort());
  expect(s3().requests.filter(({ method }) => method === "GET")).toHaveLength(4);
  const path = join(other.workspace.stepFolder("m", step.folder), "adapter_model.safetensors");
  expect(readFileSync(path, "utf8")).toBe("weights");
});

it("the same content published twice has two names, and one can go without the other", async () => {
  const servers = [await server(), await server()];
  const [first, second] = await Promise.all(servers.map((one) => published(one)));
  expect(first!.digest).toBe(second!.digest);
  expect(first!.folder).not.toBe(second!.folder);
  await servers[0]!.workspace.removeStep("m", first!.folder);
  await servers[0]!.workspace.fetchStep("m", second!.folder, "all", {});
  expect(filesOf(servers[0]!, first!)).toBeNull();
  expect(
    s3()
      .keys()
      .every((key) => key.includes(second!.folder)),
  ).toBe(true);
});

it("refuses bytes that are not those that were published, and keeps none of them", async () => {
  const step = await published(await server());
  const prefix = `p/models/m/${step.folder}`;
  for (const name of ["adapter_model.safetensors", "manifest.json"]) {
    const object = s3().objects.get(`${prefix}/${name}`)!;
    const { body } = object;
    object.body = Buffer.from(body.toString().replace("w", "W").replace("publication", "Publication"));
    const other = await server();
    await expect(other.workspace.fetchStep("m", step.folder, "adapter", {})).rejects.toThrow(DamagedFiles);
    expect(filesOf(other, step) ?? []).not.toContain("adapter_model.safetensors");
    object.body = body;
    await other.workspace.fetchStep("m", step.folder, "adapter", {});
  }
  s3().objects.delete(`${prefix}/adapter_config.json`);
  await expect((await server()).workspace.fetchStep("m", step.folder, "all", {})).rejects.toThrow(/not in the bucket/);
  s3().objects.clear();
  await expect((await server()).workspace.fetchStep("m", step.folder, "all", {})).rejects.toThrow(/not in the bucket/);
});

it("checks local copies again after a start, and brings back what a crash broke", async () => {
  const one = await server();
  const step = await published(one);
  const path = join(one.workspace.stepFolder("m", step.folder), "adapter_model.safetensors");
  writeFileSync(path, "half");
  mkdirSync(join(one.folder, "models", "m", ".staging-cut-off"));
  mkdirSync(join(one.folder, "jobs", "cut-off"));
  const again = await server({ folder: one.folder });
  expect([readdirSync(join(one.folder, "models", "m")), readdirSync(join(one.folder, "jobs"))]).toEqual([
    [step.folder],
    [],
  ]);
  s3().requests.length = 0;
  await again.workspace.fetchStep("m", step.folder, "all", {});
  expect(readFileSync(path, "utf8")).toBe("weights");
  const got = s3().requests.map(({ key }) => key.split("/").at(-1));
  expect(got).toEqual(["manifest.json", "adapter_model.safetensors"]);
});

it("keeps the local copies below the bound: the least recently used go, and none that is in use", async () => {
  const writer = await server();
  const steps: StepFiles[] = [];
  for (let i = 0; i < 4; i++) {
    steps.push(
      await published(writer, i, { "adapter_config.json": "{}", "adapter_model.safetensors": Buffer.alloc(MIB, i) }),
    );
  }
  const one = await server({ cacheBytes: 2.5 * MIB });
  const fetch = (i: number) => one.workspace.fetchStep("m", steps[i]!.folder, "adapter", {});
  const here = () => steps.flatMap((step, i) => (filesOf(one, step) ? [i] : []));
  await fetch(0);
  await fetch(1);
  await fetch(0);
  await fetch(2);
  expect(here()).toEqual([0, 2]);
  const used = new Set([0, 2]);
  one.workspace.protect((modelId, step, path) => modelId === "m" && used.has(step) && path.includes(`step-${step}-`));
  await fetch(3);
  expect(here()).toEqual([0, 2, 3]);
  used.delete(0);
  await fetch(1);
  expect(here()).toEqual([1, 2]);
  // the bound also holds for what an earlier process left
  expect(here().length).toBe(2);
  const again = await server({ folder: one.folder, cacheBytes: 1.5 * MIB });
  expect(steps.filter((step) => filesOf(again, step))).toHaveLength(1);
});

it("a publication that fails leaves nothing, and its staging folder stays", async () => {
  const one = await server();
  s3().fail({ kind: "access denied", method: "PUT", match: /optimizer/ });
  const staging = staged(one);
  await expect(one.workspace.publish(staging, "m", 1)).rejects.toThrow("the storage of the server refuses access");
  expect(s3().keys()).toEqual([]);
  expect(readdirSync(staging)).toHaveLength(3);
  s3().release();
  await one.workspace.publish(staging, "m", 1);
});

it("a job waits for a bucket that is unreachable; a request does not, and neither waits for one that refuses", async () => {
  const one = await server();
  s3().fail({ kind: "hang up" });
  await expect(one.workspace.publish(staged(one), "m", 1)).rejects.toThrow(StorageUnavailable);
  const waiting = one.workspace.publish(staged(one), "m", 1, { patient: true });
  await expect.poll(() => s3().requests.length).toBeGreaterThan(8);
  s3().release();
  const { folder } = await waiting;
  expect(s3().keys(`p/models/m/${folder}/`)).toHaveLength(4);

  s3().fail({ kind: "hang up" });
  const stop = new AbortController();
  const reason = new Error("cancelled");
  const stopped = one.workspace.publish(staged(one), "m", 1, { patient: true, signal: stop.signal });
  setTimeout(() => stop.abort(reason), 200);
  await expect(stopped).rejects.toBe(reason);
  const hasty = await server({ patienceMs: 300 });
  await expect(hasty.workspace.fetchInput("j", { patient: true })).rejects.toThrow("cannot be reached");
  s3().release();
  s3().fail({ kind: "access denied" });
  await expect(one.workspace.fetchInput("j", { patient: true })).rejects.toThrow("refuses access");
});

it("the data of a job and gradients go from one server to another", async () => {
  const [api, worker] = [await server(), await server()];
  api.workspace.createJobFolder("j");
  writeFileSync(api.workspace.jobInput("j"), "line\n");
  await api.workspace.shareInput("j", {});
  expect(existsSync(api.workspace.jobInput("j"))).toBe(false);
  const path = await worker.workspace.fetchInput("j", {});
  expect(readFileSync(path, "utf8")).toBe("line\n");
  await worker.workspace.removeJob("j");
  expect([existsSync(path), s3().keys()]).toEqual([false, []]);

  // an attempt that is repeated replaces the file of the one before
  for (const content of ["first", "second"]) {
    api.workspace.createGradientsFolder("m");
    writeFileSync(api.workspace.gradients("m", "op"), content);
    await api.workspace.shareGradients("m", "op", {});
  }
  worker.workspace.createGradientsFolder("m");
  expect(readFileSync(await worker.workspace.fetchGradients("m", "op", {}), "utf8")).toBe("second");
  await worker.workspace.removeGradients("m", "op");
  expect(s3().keys()).toEqual([]);
  expect(existsSync(await worker.workspace.fetchGradients("m", "op", {}))).toBe(false);
});

it("records are listed, read elsewhere, replaced and removed", async () => {
  const [api, worker] = [await server(), await server()];
  const record = { id: "j", modelId: "m" };
  const publish = async (one: TestServer, name: string, content: string) => {
    const made = join(one.folder, "made");
    writeFileSync(made, content);
    await one.workspace.records.publish(made, name, record, {});
  };
  await publish(api, "sent", "what was sent");
  await publish(worker, "prepared", "first");
  await publish(worker, "prepared", "second");
  expect(await worker.workspace.records.list()).toEqual([{ ...record, bytes: 19, at: expect.any(Number) }]);
  const read = async (name: string) => readFileSync(await api.workspace.records.fetch(name, record, {}), "utf8");
  expect([await read("sent"), await read("prepared")]).toEqual(["what was sent", "second"]);
  s3().objects.get("p/records/m/j/sent")!.body = Buffer.from("what was said");
  await expect(worker.workspace.records.fetch("sent", record, {})).rejects.toThrow(/was changed in the storage/);
  await worker.workspace.records.remove(record);
  expect([await worker.workspace.records.list(), s3().keys()]).toEqual([[], []]);
  // a copy that was read elsewhere is good for a minute
  const copy = await api.workspace.records.fetch("sent", record, {});
  utimesSync(copy, 0, 0);
  await api.workspace.records.fetch("sent", record, {});
  expect(existsSync(copy)).toBe(false);
});

it("clears away only what is old and belongs to nothing, page by page", async () => {
  const one = await server();
  const kept = await published(one, 1);
  const removed = await published(one, 0);
  const lost = await published(one, 2);
  const newer = await published(one, 5);
  const cut = await published(one, 3);
  s3().objects.delete(`p/models/m/${cut.folder}/manifest.json`);
  for (const job of ["open", "over"]) {
    one.workspace.createJobFolder(job);
    writeFileSync(one.workspace.jobInput(job), "x");
    await one.workspace.shareInput(job, {});
  }
  const rows = known([kept.folder], { removed: new Set([join("m", removed.folder)]) });
  expect(await one.workspace.clearLeftovers(rows, HOUR_MS)).toEqual({ removed: [], movedAside: [], unknown: [] });
  s3().age(2 * HOUR_MS);
  const cleared = await one.workspace.clearLeftovers(rows, HOUR_MS);
  expect(cleared.removed.sort()).toEqual(["jobs/over", `models/m/${cut.folder}`, `models/m/${lost.folder}`].sort());
  expect(cleared.unknown).toEqual([`models/m/${newer.folder}`]);
  expect(await one.workspace.clearLeftovers(rows, HOUR_MS)).toEqual({ removed: [], movedAside: [], unknown: [] });
  const folders = new Set(
    s3()
      .keys("p/models/")
      .map((key) => key.split("/")[3]),
  );
  expect(folders).toEqual(new Set([kept.folder, removed.folder, newer.folder]));
  expect(filesOf(one, lost)).toBeNull();
  // a model that the database does not know
  const nothing = { ...rows, models: new Map(), removed: new Set<string>() };
  expect((await one.workspace.clearLeftovers(nothing, HOUR_MS)).removed).toEqual([]);
});

it("a process that is killed while it uploads leaves nothing that counts, and the rest is cleared away", async () => {
  s3().fail({ kind: "hold", match: /partNumber=2/ });
  const script = new URL("../../../../test/s3/publish-process.mjs", import.meta.url);
  const child = fork(script, [s3().bucket, mkdtempSync(join(tmpdir(), "killed-"))], { env: { ...process.env } });
  await expect.poll(() => s3().held).toBe(1);
  child.kill("SIGKILL");
  await once(child, "exit");
  s3().release();
  expect(s3().uploads.size).toBe(1);
  expect(
    s3()
      .keys()
      .filter((key) => key.endsWith("manifest.json")),
  ).toEqual([]);
  const one = await server();
  const rows = known([]);
  await one.workspace.clearLeftovers(rows, HOUR_MS);
  expect(s3().uploads.size).toBe(1);
  s3().age(2 * HOUR_MS);
  await one.workspace.clearLeftovers(rows, HOUR_MS);
  expect([s3().uploads.size, s3().keys()]).toEqual([0, []]);
});
