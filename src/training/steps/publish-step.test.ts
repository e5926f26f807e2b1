import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import { PROJECT_STORE } from "../../../test/support/stores.ts";
import {
  benchesOfTest,
  beside,
  ended,
  newModel,
  stepFolder,
  submit,
  type TrainingBench,
} from "../../../test/support/training-service.ts";
import { violations } from "../../../test/training-invariants/violations.ts";
import { MIGRATIONS } from "../../store/migrations.ts";
import { openSqlite } from "../../store/sqlite.ts";
import { transactionsOn } from "../../store/tables/tables.ts";
import { StepFolders, stepDigest } from "../files/step-folders.ts";

const start = benchesOfTest();
afterEach(() => {
  vi.restoreAllMocks();
});

const rootOf = ({ folder }: TrainingBench) => join(folder, "training");

const wrong = (bench: TrainingBench, stepsDeleted = false) =>
  beside(bench, (_tables, store) => violations({ store, folder: rootOf(bench), stepsDeleted }));
const row = (bench: TrainingBench, id: string, step: number) =>
  beside(bench, ({ modelTable }) => modelTable.step(id, step));

/** A new staging folder with one file. */
function staged(workspace: StepFolders, label: string, content: string): string {
  const staging = workspace.newStaging("m", label);
  mkdirSync(staging);
  writeFileSync(join(staging, "adapter_model.safetensors"), content);
  return staging;
}

it("a published step has its folder and the digest of its files in its row", async () => {
  const bench = await start();
  const { id } = await newModel(bench);
  await ended(bench, await submit(bench, id));
  const step = (await row(bench, id, 1))!;
  const folder = join(rootOf(bench), "models", id, step.folder);
  expect(step.digest).toBe(await stepDigest(folder));
  expect(step.folder).toBe(`step-1-${step.digest!.slice(0, 12)}`);
  expect(await wrong(bench)).toEqual([]);
  writeFileSync(join(folder, "adapter_config.json"), "{}");
  expect(await wrong(bench)).toEqual([`model ${id}: step 1 has other files than its row`]);
});

it("the digest depends on names, sizes and contents, and on nothing else", async () => {
  const folder = mkdtempSync(join(tmpdir(), "digest-"));
  const digests: string[] = [];
  for (const files of [
    { a: "xy", b: "z" },
    { a: "x", b: "yz" },
    { a: "xy", c: "z" },
    { b: "z", a: "xy" },
  ]) {
    const step = mkdtempSync(join(folder, "step-"));
    for (const [name, content] of Object.entries(files)) writeFileSync(join(step, name), content);
    digests.push(await stepDigest(step));
  }
  expect(new Set(digests.slice(0, 3)).size).toBe(3);
  expect(digests[3]).toBe(digests[0]);
});

it("two servers that move the same step into place do not touch each other's files", async () => {
  const root = mkdtempSync(join(tmpdir(), "publish-"));
  const [one, other] = [new StepFolders(root), new StepFolders(root)];
  const contents = ["first", "second", "first"];
  const made = await Promise.all(
    contents.map((content, i) => [one, other][i % 2]!.publish(staged(one, `${i}`, content), "m", 3)),
  );
  expect(new Set(made.map(({ folder }) => folder)).size).toBe(3);
  expect(made[2]!.digest).toBe(made[0]!.digest);
  for (const [i, { folder }] of made.entries()) {
    expect(readFileSync(join(one.stepFolder("m", folder), "adapter_model.safetensors"), "utf8")).toBe(contents[i]);
  }
});

it("of two servers that publish the same step, one gets the number and the other one leaves no files", async () => {
  const bench = await start();
  const { id } = await newModel(bench);
  const publish = StepFolders.prototype.publish;
  let theirs = "";
  vi.spyOn(StepFolders.prototype, "publish").mockImplementationOnce(async function (
    this: StepFolders,
    staging,
    model,
    step,
  ) {
    // the other server, between the files and the row of this one: with the same content
    const copy = this.newStaging(model, "other-1");
    cpSync(staging, copy, { recursive: true });
    const ours = await publish.call(this, staging, model, step);
    const files = await publish.call(this, copy, model, step);
    theirs = files.folder;
    await beside(bench, (_tables, store) =>
      transactionsOn(store)((tx) => tx.modelTable.insertStep(model, step, null, files, {})),
    );
    return ours;
  });
  await expect(bench.service.models.rollback(id, "me", 0)).rejects.toThrow("step 1 was already given");
  expect((await row(bench, id, 1))!.folder).toBe(theirs);
  expect(existsSync(join(rootOf(bench), "models", id, theirs))).toBe(true);
  expect(await wrong(bench)).toEqual([]);
});

it("keeps the files of a step when the answer to its commit is lost", async () => {
  let lose = false;
  const bench = await start({
    wrapStore: (store) => ({
      run: store.run.bind(store),
      get: store.get.bind(store),
      all: store.all.bind(store),
      notify: store.notify.bind(store),
      listen: store.listen.bind(store),
      close: store.close.bind(store),
      transaction: async (work, options) => {
        const result = await store.transaction(work, options);
        if (lose && !options?.relaxed) throw new Error("connection lost");
        return result;
      },
    }),
  });
  const { id } = await newModel(bench);
  lose = true;
  await expect(bench.service.models.rollback(id, "me", 0)).rejects.toThrow("connection lost");
  await expect(newModel(bench, "second")).rejects.toThrow("connection lost");
  lose = false;
  expect((await bench.service.models.steps(id, "me")).map(({ step }) => step)).toEqual([0, 1]);
  expect(await wrong(bench)).toEqual([]);
});

// PostgreSQL came later
if (PROJECT_STORE === "SQLite") {
  it("goes on with the folders of a data directory from before rows named them", async () => {
    const made = await start();
    const { id } = await newModel(made);
    await ended(made, await submit(made, id));
    const folder = mkdtempSync(join(tmpdir(), "old-data-"));
    const older = openSqlite(
      join(folder, "flywheel.db"),
      MIGRATIONS.slice(
        0,
        MIGRATIONS.findIndex(({ name }) => name === "the files of steps"),
      ),
    );
    await beside(made, async (_tables, store) => {
      for (const table of ["models", "steps"]) {
        const columns = (await older.all<{ name: string }>(`PRAGMA table_info(${table})`)).map(({ name }) => name);
        for (const values of await store.all<Record<string, string>>(`SELECT ${columns.join()} FROM ${table}`)) {
          const places = columns.map((_, i) => `?${i + 1}`).join();
          await older.run(`INSERT INTO ${table} VALUES (${places})`, ...columns.map((column) => values[column]!));
        }
      }
    });
    await older.close();
    for (const step of [0, 1]) {
      cpSync(stepFolder(made, id, step), join(folder, "training", "models", id, `step-${step}`), { recursive: true });
    }

    const bench = await start({ folder });
    const files = () => readdirSync(join(rootOf(bench), "models", id)).filter((name) => name !== "curves");
    expect(files().sort()).toEqual(["step-0", "step-1"]);
    expect(await row(bench, id, 1)).toMatchObject({ folder: "step-1", digest: null });
    const lease = await bench.service.policies.acquire("agent@1", "me");
    expect(basename(bench.engine.loads.at(-1)!)).toBe("step-1");
    lease!.release();
    expect((await bench.service.models.rollback(id, "me", 1)).folder).toMatch(/^step-2-[0-9a-f]{12}$/);
    expect((await ended(bench, await submit(bench, id))).at(-1)).toMatchObject({ data: { step: 3 } });
    expect(await bench.service.models.deleteSteps(id, "me", [1])).toMatchObject({ deletedCount: 1 });
    expect(files()).not.toContain("step-1");
    expect(await wrong(bench, true)).toEqual([]);
  });
}
