// kill -9 of torchrun or of any rank at random moments: no process stays behind, and the task runs again and ends once.
// FLYWHEEL_KILLS sets how many. Needs a Python with torch and transformers, named by FLYWHEEL_TORCH_PYTHON.

import { readdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { LINUX, needing, TORCH } from "../support/needs.ts";
import { OBJECTIVES, processesWith, run, torchTrainer } from "./torch-harness.ts";

const KILLS = Number(process.env.FLYWHEEL_KILLS ?? 5);
const RANKS = 2;
const WANTED = { family: "llama", objective: OBJECTIVES[0]!, steps: 4 } as const;

needing(TORCH, LINUX).describe("the torch trainer", () => {
  it(`survives ${KILLS} kills`, { timeout: 180_000 * (KILLS + 2) }, async () => {
    const begun = Date.now();
    const undisturbed = await run(torchTrainer(RANKS), WANTED);
    const longest = Date.now() - begun;
    for (let kill = 0; kill < KILLS; kill++) {
      const marker = `KILL_MARKER=${process.pid}-${kill}`;
      const trainer = torchTrainer(RANKS, { KILL_MARKER: marker.split("=")[1]! }, 2);
      const ending = run(trainer, WANTED);
      await sleep(Math.random() * longest);
      const alive = processesWith(marker);
      const victim = alive[Math.floor(Math.random() * alive.length)];
      if (victim !== undefined) process.kill(victim, "SIGKILL");
      const { steps, output } = await ending;
      expect(steps.map(({ loss }) => loss)).toEqual(undisturbed.steps.map(({ loss }) => loss));
      expect(readdirSync(output)).toHaveLength(3);
      await trainer.close();
      await expect.poll(() => processesWith(marker), { timeout: 10_000 }).toEqual([]);
    }
  });
});
