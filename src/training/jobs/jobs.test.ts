import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createLog } from "../../observe/log.ts";
import { openStore } from "../../store/db.ts";
import { EventTable } from "../../store/event-table.ts";
import { JobTable } from "../../store/job-table.ts";
import { ModelTable } from "../../store/model-table.ts";
import { RL_DEFAULTS } from "../config.ts";
import { Workspace } from "../files/workspace.ts";
import { Jobs } from "./jobs.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "jobs-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it("counts the tokens that the end of a job says, without a look at its report", async () => {
  const store = openStore(":memory:");
  const events = new EventTable(store);
  const [models, table] = [new ModelTable(store), new JobTable(store, events)];
  models.insert({
    ...{ id: "m", owner: "me", entity: "e", project: "p", name: "n", baseModel: "b" },
    ...{ loraRank: 1, loraAlpha: 1, nextStep: 0 },
  });
  const told: unknown[] = [];
  const jobs = new Jobs({
    ...{ store, models, jobs: table, events, workspace: new Workspace(folder) },
    limits: { maxOpenJobs: 1, maxBytesPerOwner: 1 },
    observer: {
      trainingJobs() {},
      gradientStep() {},
      trainingJobEnded: (status, _seconds, tokens) => told.push([status, tokens]),
    },
    log: createLog({ level: "error", format: "text" }),
  });
  const draft = await jobs.draft();
  const spec = { kind: "rl" as const, config: RL_DEFAULTS };
  const { id } = await jobs.submit(draft, { owner: "me", modelId: "m", spec, idempotencyKey: null, requestHash: "" });
  table.start(id, 0);
  jobs.finish(id, {
    ...{ status: "COMPLETED", errorMessage: null, toStep: 1, report: "a report of many megabytes" },
    ...{ tokens: 22, rewardStdDev: null, event: { type: "training_ended", data: { step: 1 } } },
  });
  expect(told).toEqual([["COMPLETED", 22]]);
  store.close();
});
