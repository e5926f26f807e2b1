// The contract of an engine, met by the Python process of the GPU engine, on the processor.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { pythonPath } from "../../src/app/trainer.ts";
import { adapterFolder } from "../support/adapter-folder.ts";
import { describeEngine } from "../support/engine-contract.ts";
import { startGpu } from "../support/gpu-engine.ts";
import { needing, TORCH } from "../support/needs.ts";
import { LLAMA } from "../support/training-service.ts";

needing(TORCH).describe("the GPU process", { timeout: 300_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "flywheel-gpu-contract-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  describeEngine("without a GPU", () => ({
    start: async (needs) => {
      const command = [process.env.FLYWHEEL_TORCH_PYTHON!, "-m", "flywheel_gpu"] as [string, ...string[]];
      const env = { ...pythonPath(), OMP_NUM_THREADS: "1" };
      return (await startGpu({ process: { command, env }, folder: LLAMA, ...needs })).engine;
    },
    folders: [adapterFolder(folder, "red"), adapterFolder(folder, "blue"), adapterFolder(folder, "green")],
    tolerance: 1e-4,
  }));
});
