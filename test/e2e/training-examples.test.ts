// Runs the training examples as written against a real server with a tiny model.

import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { startServer } from "../../src/app/serve.ts";
import { createTraining } from "../../src/app/training.ts";
import { loadConfig } from "../../src/config/load.ts";
import { need, needing } from "../support/needs.ts";
import { databaseOf, LLAMA } from "../support/training-service.ts";

const EXAMPLES = fileURLToPath(new URL("../../examples/", import.meta.url));

/** What the command prints, with a server in its environment and `data` as its folder. */
async function output(command: string, args: readonly string[], data: string): Promise<string> {
  const options = { port: 0, data, apiKey: ["key"], logLevel: "error" as const, threads: 1, model: LLAMA };
  const config = { ...loadConfig({ env: {} }), ...options, database: await databaseOf(data) };
  const server = await startServer(config, loadModel, [createTraining]);
  try {
    const env = {
      ...process.env,
      OPENAI_BASE_URL: `${server.url}/v1`,
      OPENAI_API_KEY: "key",
      STEPS: "2",
      PYTHONDONTWRITEBYTECODE: "1",
    };
    const result = await new Promise<{ error: Error | null; out: string; err: string }>((resolve) => {
      execFile(command, args, { env, cwd: data }, (error, out, err) => resolve({ error, out, err }));
    });
    expect(result.error, result.err).toBeNull();
    return result.out;
  } finally {
    await server.close();
  }
}

async function inNewFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "flywheel-example-"));
  try {
    await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

it("runs 07-train.mjs", () =>
  inNewFolder(async (folder) => {
    const out = await output(process.execPath, [`${EXAMPLES}07-train.mjs`], folder);
    expect(out).toMatch(/^step 1: .*\nstep 2: .*\nbrief:step2: /);
  }));

/** What 08-train-art.py does behind the loop, which needs ART itself. */
const PROGRAM = `
import os, sys
from types import SimpleNamespace
sys.path.insert(0, sys.argv[1])
from flywheel_art import Flywheel
server = Flywheel(os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"])
base = server._json("GET", "/preview/base-models")[0]
server._json("POST", "/preview/models", {"project": "p", "name": "n", "base_model": base})
model = SimpleNamespace(project="p", name="n")
example = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
print(server.train_sft(model, [example] * 2, learning_rate=1e-4, batch_size=1)["step"])
fork = SimpleNamespace(**server.fork(model, "n2", 1))
print(fork.name, server._json("GET", f"/preview/models/{fork.id}/checkpoints/latest")["step"])
print(server.download(fork, "adapter"))
`;
const hasPython = spawnSync("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 10))"]).status === 0;

needing(need("Python 3.10", hasPython)).it("trains, forks and downloads with flywheel_art.py", () =>
  inNewFolder(async (folder) => {
    expect(await output("python3", ["-c", PROGRAM, EXAMPLES], folder)).toBe("1\nn2 1\nadapter\n");
    expect(readdirSync(join(folder, "adapter")).sort()).toEqual(["adapter_config.json", "adapter_model.safetensors"]);
  }),
);
