import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { freshStores, PROJECT_STORE } from "../../../test/support/stores.ts";
import { createLog } from "../../observe/log.ts";
import { tablesOn, transactionsOn } from "../../store/tables/tables.ts";
import { StepFolders } from "../files/step-folders.ts";
import { JobJournal } from "./job-journal.ts";

const newStore = freshStores(PROJECT_STORE);
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "jobs-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it("counts the tokens of the end of a job without parsing its report, and leaves what is over as it is", async () => {
  const store = await newStore();
  const { modelTable, jobTable, eventTable, leaseTable } = tablesOn(store);
  await modelTable.insert({
    ...{ id: "m", owner: "me", entity: "e", project: "p", name: "n", baseModel: "b" },
    ...{ loraRank: 1, loraAlpha: 1, nextStep: 0 },
  });
  const told: unknown[] = [];
  const journal = new JobJournal({
    ...{ transaction: transactionsOn(store), jobTable, eventTable, hints: store, workspace: new StepFolders(folder) },
    observer: {
      trainingJobs() {},
      gradientStep() {},
      trainingJobEnded: (status, _seconds, tokens) => told.push([status, tokens]),
    },
    log: createLog({ level: "error", format: "text" }),
  });
  const job = { id: "j", modelId: "m", owner: "me", kind: "rl" as const, config: "{}" };
  await jobTable.insert({ ...job, idempotencyKey: null, requestHash: "", openBytes: 0, recordBytes: 0 });
  const { lease } = (await leaseTable.claim("server", 1000))!;
  await journal.finish(lease, {
    ...{ status: "COMPLETED", errorMessage: null, toStep: 1, report: "a report of many megabytes" },
    ...{ tokens: 22, rewardStdDev: null, event: { type: "training_ended", data: { step: 1 } } },
  });
  expect(told).toEqual([["COMPLETED", 22]]);

  // what is over stays as it is
  const over = await jobTable.get("j");
  expect(await journal.cancel("j", "too late")).toBe("COMPLETED");
  expect(await jobTable.get("j")).toEqual(over);
  expect(await eventTable.count("j", "training_failed")).toBe(0);
});
