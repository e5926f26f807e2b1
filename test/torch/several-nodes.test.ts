// Ranks on several machines: torchrun's rendezvous and Ray, with the connection to the server over TCP. Both machines are
// this one. Needs a Python with torch and transformers, named by FLYWHEEL_TORCH_PYTHON; Ray's test needs ray in it too.

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { freePort } from "../support/free-port.ts";
import { need, needing, TORCH } from "../support/needs.ts";
import {
  commandTrainer,
  expectSameAdapters,
  expectSameSteps,
  folder,
  OBJECTIVES,
  PYTHON,
  processesWith,
  run,
  torchTrainer,
} from "./torch-harness.ts";

const WANTED = { family: "llama", objective: OBJECTIVES[1]!, steps: 3 } as const;
const ADDRESS = { host: "127.0.0.1", port: 0 };
const hasRay = Boolean(PYTHON) && spawnSync(PYTHON!, ["-c", "import ray.train"]).status === 0;

let made = 0;
/** And that no process stays behind. */
async function expectTheNumbersOfOne(command: string): Promise<void> {
  const one = await run(torchTrainer(), WANTED);
  const marker = `NODES_MARKER=${process.pid}-${made++}`;
  const trainer = commandTrainer(command, { NODES_MARKER: marker.split("=")[1]! }, { address: ADDRESS });
  const two = await run(trainer, WANTED);
  expectSameSteps(two.steps, one.steps, 1e-6);
  expectSameAdapters(two.output, one.output, 1e-6);
  expect(two.tokens).toBe(one.tokens);
  if (process.platform === "linux") expect(processesWith(marker).length).toBeGreaterThan(1);
  await trainer.close();
  if (process.platform === "linux") await expect.poll(() => processesWith(marker), { timeout: 30_000 }).toEqual([]);
}

needing(TORCH).describe("several machines", { timeout: 400_000 }, () => {
  it("have the numbers of one with torchrun's rendezvous", async () => {
    const endpoint = `127.0.0.1:${await freePort()}`;
    const rendezvous = `--nnodes=2 --nproc-per-node=1 --rdzv-backend=c10d --rdzv-endpoint=${endpoint} --rdzv-id=job`;
    const node = `"${PYTHON}" -m torch.distributed.run ${rendezvous} -m flywheel_trainer`;
    const script = join(folder, "nodes.sh");
    writeFileSync(script, `${node} &\nexec ${node}\n`);
    await expectTheNumbersOfOne(`sh ${script}`);
  });

  needing(need("ray in that Python", hasRay)).it("have the numbers of one with Ray", async () => {
    await expectTheNumbersOfOne(`"${PYTHON}" -m flywheel_trainer_ray --workers 2 --cpu`);
  });
});
