// What was promised survives a power failure: the disk of the simulation forgets whatever was not synced.

import "./stage.ts";

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { StepFolders } from "../../src/training/files/step-folders.ts";
import { InputWriter } from "../../src/training/jobs/job-input.ts";
import { Disk } from "./disk.ts";
import { onStage } from "./stage.ts";
import { World } from "./world.ts";

const ROOT = "/simulated/data/training";

/** Works on a disk that then loses all that it may. */
async function beforePowerFails(work: () => Promise<void>): Promise<Disk> {
  const world = new World(1);
  const disk = new Disk("/simulated", () => world.now);
  await onStage(world, disk, async () => {
    expect(await world.perform(world.outside, work, 60_000)).toBe(true);
  });
  expect(world.wrong).toEqual([]);
  disk.losePower({ between: () => 0 });
  return disk;
}

it("keeps the data of an accepted job", async () => {
  const disk = await beforePowerFails(async () => {
    const workspace = new StepFolders(ROOT);
    workspace.createJobFolder("job");
    const input = await InputWriter.create(workspace.jobInput("job"), async () => {});
    await input.append({ some: "data" });
    await input.finish();
    await workspace.shareInput("job", {});
  });
  expect(disk.exists(`${ROOT}/jobs/job/submission.jsonl`)).toBe(true);
  expect(disk.stat(`${ROOT}/jobs/job/submission.jsonl`).size).toBeGreaterThan(10);
});

it("keeps a published step", async () => {
  let folder = "";
  const disk = await beforePowerFails(async () => {
    const workspace = new StepFolders(ROOT);
    const staging = workspace.newStaging("model", "first");
    mkdirSync(staging);
    writeFileSync(`${staging}/adapter_config.json`, "{}");
    ({ folder } = await workspace.publish(staging, "model", 0));
    expect(existsSync(`${ROOT}/models/model/${folder}/adapter_config.json`)).toBe(true);
  });
  expect(disk.stat(`${ROOT}/models/model/${folder}/adapter_config.json`).size).toBe(2);
});
