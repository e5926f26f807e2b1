// Runs examples/07-train.mjs as written against a real server with a tiny model: rollouts, two training jobs, and an answer
// from the newest step.

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { startServer } from "../../src/app/serve.ts";
import { createTraining } from "../../src/app/training.ts";
import { loadConfig } from "../../src/config/load.ts";
import { LLAMA } from "../fakes/training-service.ts";

it("runs 07-train.mjs", async () => {
  const data = mkdtempSync(join(tmpdir(), "flywheel-example-"));
  const options = { port: 0, data, apiKey: ["key"], logLevel: "error" as const, threads: 1, model: LLAMA };
  const server = await startServer({ ...loadConfig({ env: {} }), ...options }, loadModel, [createTraining]);
  try {
    const env = { ...process.env, OPENAI_BASE_URL: `${server.url}/v1`, OPENAI_API_KEY: "key", STEPS: "2" };
    const file = fileURLToPath(new URL("../../examples/07-train.mjs", import.meta.url));
    const result = await new Promise<{ error: Error | null; out: string; err: string }>((resolve) => {
      execFile(process.execPath, [file], { env }, (error, out, err) => resolve({ error, out, err }));
    });
    expect(result.error, result.err).toBeNull();
    expect(result.out).toMatch(/^step 1: .*\nstep 2: .*\nbrief:step2: /);
  } finally {
    await server.close();
    rmSync(data, { recursive: true, force: true });
  }
});
