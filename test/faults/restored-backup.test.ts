// The backup of docs/guides/backup.md is restored, and the first server starts on it. Every call of that start
// fails once. The database is older than the files: what it knows is there, and what it does not know is kept.

import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { openSqlite } from "../../src/store/sqlite.ts";
import { claimStorage, FolderMarker } from "../../src/training/files/claim-storage.ts";
import { stepDigest } from "../../src/training/files/step-folders.ts";
import { newModel } from "../support/training-service.ts";
import { violations } from "../training-invariants/violations.ts";
import { FaultPoints, failEach, WAYS, type Way } from "./fault-points.ts";
import { breakDisk } from "./faulty-disk.ts";
import { faultyStore } from "./faulty-store.ts";
import { answersAs, MEMORY, OWNER, openScene, overOf, quickRetries, type Scene, submitJob } from "./scene.ts";

const noFaults = () => new FaultPoints(WAYS[0]!, 0);
let root: string;
let backup: Backup;
beforeAll(async () => {
  root = mkdtempSync(join(MEMORY, "restored-"));
  quickRetries();
  backup = await makeBackup();
});
afterAll(() => {
  vi.restoreAllMocks();
  rmSync(root, { recursive: true, force: true });
});

interface Backup {
  /** The dump of the database, then the copy of the files. */
  dump: string;
  files: string;
  agent: string;
  /** Digests of the steps that are newer than the dump. */
  newer: string[];
}

/** The dump comes first. Until the copy is made, a waiting job ends, another one follows, and a step is removed. */
async function makeBackup(): Promise<Backup> {
  const [folder, dump, files] = ["server", "flywheel.dump", "files"].map((name) => join(root, name)) as string[];
  mkdirSync(folder!);
  const first = await openScene(folder!, noFaults(), { runsJobs: true });
  const { id: agent } = await newModel(first.bench, "agent");
  await overOf(first, (await submitJob(first, agent)).id);
  await claimStorage(new FolderMarker(join(folder!, "training")), first.store);
  await first.close();
  const waiting = await openScene(folder!, noFaults());
  const { id } = await submitJob(waiting, agent);
  await waiting.store.run("VACUUM INTO ?1", dump!);
  await waiting.close();

  const later = await openScene(folder!, noFaults(), { runsJobs: true, stepGraceMs: 3_600_000 });
  await overOf(later, id);
  await overOf(later, (await submitJob(later, agent)).id);
  await later.bench.service.models.deleteSteps(agent, OWNER, [1]);
  const newer = (await later.tables.modelTable.steps(agent))
    .filter(({ step }) => step > 1)
    .map(({ digest }) => digest!);
  await later.close();
  cpSync(join(folder!, "training"), files!, { recursive: true });
  expect(newer).toHaveLength(2);
  return { dump: dump!, files: files!, agent, newer };
}

describe.each([
  ["alone", WAYS],
  // it needs no transaction
  ["beside others", WAYS.filter(({ name }) => name !== "lost commit")],
])("a start on a restored backup, %s", (name, ways) => {
  const shared = name !== "alone";
  it.each(ways.map((way) => [way.name, way] as const))("ends well, %s", async (_way, way) => {
    const { wrong, calls } = await failEach((number) => attempt(way, number, shared));
    console.log(`restore, ${name}, ${way.name}: ${calls} calls`);
    expect(wrong).toEqual([]);
    expect(calls).toBeGreaterThan(0);
  });
});

async function attempt(way: Way, number: number, shared: boolean) {
  const folder = join(root, "restored");
  const training = join(folder, "training");
  rmSync(folder, { recursive: true, force: true });
  cpSync(backup.files, training, { recursive: true });
  cpSync(backup.dump, join(folder, "flywheel.db"));
  const faults = new FaultPoints(way, number);
  const mend = breakDisk(folder, faults);
  const problems: string[] = [];
  const say = (what: string) => problems.push(what);
  try {
    faults.begin();
    const scene = await start(folder, faults, shared).catch((error: Error) => error);
    faults.end();
    if (scene instanceof Error) {
      if (faults.hit === null || scene.message === "") say(`it did not start: ${scene.stack}`);
    } else await scene.close();

    const again = await start(folder, noFaults(), shared);
    const { tables, bench, store } = again;
    const [job] = await tables.jobTable.list(OWNER, backup.agent, null, null, 1);
    const { status, errorMessage } = await overOf(again, job!.id);
    if (status !== "FAILED" || !errorMessage || errorMessage.includes(folder))
      say(`the job is ${status}: ${errorMessage}`);
    if ((await answersAs(bench, "agent")) !== 1) say("the newest step of the dump does not answer");
    const digests = new Set(await digestsBelow(training));
    for (const digest of backup.newer) if (!digests.has(digest)) say("a step that the dump does not know is gone");
    const next = await overOf(again, (await submitJob(again, backup.agent)).id);
    if (next.status !== "COMPLETED" || next.toStep !== 2) say(`the next job is ${next.status}: ${next.errorMessage}`);
    if ((await answersAs(bench, "agent")) !== 2) say("the new step does not answer");
    const later = new Set(await digestsBelow(training));
    for (const digest of backup.newer) if (!later.has(digest)) say("a step that the dump does not know went later");
    const graceMs = shared ? 3_600_000 : 0;
    for (const violation of await violations({ store, folder: training, graceMs })) say(violation);
    await again.close();
    return { faults, problems };
  } finally {
    mend();
  }
}

/** As a server does: it checks that the files belong to the database, then starts. */
async function start(folder: string, faults: FaultPoints, shared: boolean): Promise<Scene> {
  const store = openSqlite(join(folder, "flywheel.db"));
  try {
    await claimStorage(new FolderMarker(join(folder, "training")), faultyStore(store, faults));
  } finally {
    await store.close();
  }
  return openScene(folder, faults, { runsJobs: true, shared });
}

/** Of all steps below a folder, wherever they are now. */
async function digestsBelow(folder: string): Promise<string[]> {
  const found: string[] = [];
  for (const area of ["models", "orphans"].map((name) => join(folder, name)).filter((path) => existsSync(path))) {
    for (const model of readdirSync(area)) {
      for (const step of readdirSync(join(area, model)).filter((name) => name.startsWith("step-"))) {
        found.push(await stepDigest(join(area, model, step)));
      }
    }
  }
  return found;
}
