// The contract, met by the embedded engine with a small checkpoint.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { openRunner } from "../../test/reference/runner-driver.ts";
import { adapterFolder } from "../../test/support/adapter-folder.ts";
import { ChoiceConstraints } from "../../test/support/choice-constraint.ts";
import { describeEngine } from "../../test/support/engine-contract.ts";
import { InProcessEngine } from "../../test/support/in-process-engine.ts";
import { LLAMA } from "../../test/support/training-service.ts";

const folder = mkdtempSync(join(tmpdir(), "flywheel-engine-contract-"));
afterAll(() => rmSync(folder, { recursive: true }));

describeEngine("the embedded engine", () => ({
  start: async ({ scheduling, cacheTokens = 4096 }) => {
    const runner = await openRunner(LLAMA, {
      positionsPerBlock: 64,
      numBlocks: cacheTokens / 64,
      adaptersFromStart: true,
    });
    const { adapters } = runner;
    const constraints = new ChoiceConstraints(runner.vocabSize);
    return new InProcessEngine(
      { runner, adapters, constraints, close: () => runner.close() },
      scheduling === undefined ? {} : { scheduling },
    );
  },
  folders: [adapterFolder(folder, "red"), adapterFolder(folder, "blue"), adapterFolder(folder, "green")],
  tolerance: 1e-6,
}));
