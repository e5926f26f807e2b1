// The adapters of both trainers load in PEFT and give the engine's numbers there. Needs a Python with torch, transformers
// and PEFT, named by FLYWHEEL_TORCH_PYTHON.

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { blocksFrom, chunk, type Family, logSoftmax, openRunner, runAlone } from "../reference/runner-driver.ts";
import { need, needing, TORCH } from "../support/needs.ts";
import {
  checkpoint,
  embedded,
  folder,
  OBJECTIVES,
  PACKAGE,
  PYTHON,
  python,
  run,
  torchTrainer,
} from "./torch-harness.ts";

const IDS = Array.from({ length: 40 }, (_, i) => 3 + ((i * 37) % 250));
const hasPeft = Boolean(PYTHON) && spawnSync(PYTHON!, ["-c", "import peft"]).status === 0;

/** Log-probabilities of the whole vocabulary after every id, by the embedded engine with this adapter. */
async function byEngine(family: Family, adapter: string): Promise<number[][]> {
  const runner = await openRunner(checkpoint(family));
  try {
    const { slot } = await runner.adapters.load(adapter);
    const logits = await runAlone(runner, chunk(IDS, 0, blocksFrom(0, IDS.length, 16), { adapterSlot: slot }));
    const rows = IDS.map((_, i) => logits.subarray(i * runner.vocabSize, (i + 1) * runner.vocabSize));
    return rows.map((row) => [...logSoftmax(row)]);
  } finally {
    await runner.close();
  }
}

needing(TORCH, need("peft in that Python", hasPeft)).describe("PEFT", { timeout: 300_000 }, () => {
  it("gives the engine's logits with the adapters of both trainers, for two families", async () => {
    const torch = torchTrainer();
    for (const family of ["qwen3", "gemma3"] as const) {
      // large steps, so that the adapter matters
      const wanted = { family, objective: OBJECTIVES[0]!, steps: 3, learningRate: 1e-2 };
      for (const [name, made] of [
        ["onnx", await embedded(wanted)],
        ["torch", await run(torch, wanted)],
      ] as const) {
        const path = join(folder, "wanted.json");
        writeFileSync(path, JSON.stringify({ ids: IDS, logprobs: await byEngine(family, made.output) }));
        const script = join(PACKAGE, "tests/peft_logits.py");
        const found = JSON.parse(await python(script, checkpoint(family), made.output, path)) as Record<string, number>;
        expect(found.adapter_moves, name).toBeGreaterThan(0.05);
        expect(found.off, `${family} ${name}`).toBeLessThanOrEqual(1e-4);
      }
    }
  });
});
