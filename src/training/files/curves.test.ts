import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { freshStores, PROJECT_STORE } from "../../../test/support/stores.ts";
import { createLog } from "../../observe/log.ts";
import type { Store } from "../../store/store.ts";
import { EventTable } from "../../store/tables/events.ts";
import { JobTable } from "../../store/tables/jobs.ts";
import { ModelTable } from "../../store/tables/models.ts";
import { CurveWriter } from "./curves.ts";
import { StepFolders } from "./step-folders.ts";

const newStore = freshStores(PROJECT_STORE);
let store: Store;
let tables: { modelTable: ModelTable; eventTable: EventTable };
let write: () => Promise<void>;
let curves: string;
let nextStep: number;
beforeEach(async () => {
  store = await newStore();
  tables = { modelTable: new ModelTable(store), eventTable: new EventTable(store) };
  const workspace = new StepFolders(mkdtempSync(join(tmpdir(), "curves-")));
  const writer = new CurveWriter({ ...tables, workspace, log: createLog({ level: "error", format: "text" }) });
  write = () => writer.write("m");
  const model = { id: "m", owner: "me", entity: "e", project: "p", name: "n", baseModel: "b" };
  await tables.modelTable.insert({ ...model, loraRank: 1, loraAlpha: 1, nextStep: 1 });
  curves = workspace.curvesFolder("m");
  nextStep = 1;
});

/** A step made in so many gradient steps, counted from 1 as the trainer does. */
async function published(gradientSteps: number): Promise<void> {
  const step = nextStep++;
  const job = { id: `j${step}`, modelId: "m", owner: "me", kind: "rl" as const, config: "{}" };
  await new JobTable(store, tables.eventTable).insert({
    ...job,
    idempotencyKey: null,
    requestHash: "",
    openBytes: 0,
    recordBytes: 0,
  });
  for (let i = 1; i <= gradientSteps; i++) {
    await tables.eventTable.add(job.id, "gradient_step", { loss: step + i / 10, note: 0.125, gradient_step: i });
  }
  await tables.modelTable.insertStep("m", step, job.id, { folder: `step-${step}-d`, digest: "d", bytes: 1 }, {});
}
const file = () => join(curves, "metrics.jsonl");
const content = () =>
  Object.fromEntries(readdirSync(curves).map((name) => [name, readFileSync(join(curves, name)).toString("hex")]));
const numbers = () =>
  readFileSync(file(), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { step: number; gradient_step: number })
    .map(({ step, gradient_step }) => [step, gradient_step]);

describe("curves", () => {
  it("count gradient steps since the model was created, whenever they are written", async () => {
    await published(2);
    await published(1);
    await write();
    await published(0);
    await published(2);
    await write();
    await write();
    const all = [...[1, 2].map((n) => [1, n]), [2, 3], ...[4, 5].map((n) => [4, n])];
    expect(numbers()).toEqual(all);
    expect(readdirSync(curves).filter((name) => name.startsWith("events"))).toHaveLength(3);
  });

  it("are completed after a crash at any byte", async () => {
    await published(2);
    await published(3);
    await write();
    const whole = content();
    const bytes = readFileSync(file());
    for (let length = bytes.length - 1; length >= 0; length -= 3) {
      truncateSync(file(), length);
      // cut off too: it is written before the lines of its step
      writeFileSync(join(curves, "events.out.tfevents.step-2"), "half");
      if (length < bytes.length / 3) rmSync(join(curves, "events.out.tfevents.step-2"));
      await write();
      expect([length, content()]).toEqual([length, whole]);
    }
    // what a lost block leaves behind
    writeFileSync(file(), Buffer.concat([bytes, Buffer.alloc(50), Buffer.from("\n")]));
    await published(1);
    await write();
    expect(numbers()).toEqual([...[1, 2].map((n) => [1, n]), ...[3, 4, 5].map((n) => [2, n]), [3, 6]]);
  });

  it("are completed in the middle of a long step", async () => {
    await published(3);
    await published(2000);
    await write();
    const whole = content();
    truncateSync(file(), readFileSync(file()).length - 30_000);
    await write();
    expect(content()).toEqual(whole);
  });
});
