// The README as a newcomer pastes it: the model from the hub (here one on this machine, with a tiny checkpoint), the bundled one, and
// the two programs that train a policy.

import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { type StartedServer, startServer } from "../../src/app/serve.ts";
import { createTraining } from "../../src/app/training.ts";
import { loadConfig } from "../../src/config/load.ts";
import { clean, MODEL } from "../support/cli-process.ts";
import { startFakeHub } from "../support/fake-hub.ts";
import { need, needing } from "../support/needs.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const readme = readFileSync(join(ROOT, "README.md"), "utf8");
const block = (language: string) => new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "ms").exec(readme)![1]!;

let folder: string;
let server: StartedServer;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "flywheel-readme-"));
  symlinkSync(join(ROOT, "test/clients/node_modules"), join(folder, "node_modules"));
  const flags = { port: 0, data: join(folder, "data"), apiKey: ["k"], logLevel: "error" };
  server = await startServer(loadConfig({ env: {}, flags }), loadModel, [createTraining]);
});
afterAll(async () => {
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What a command prints. */
async function output(command: string, args: string[], env: NodeJS.ProcessEnv, cwd = folder): Promise<string> {
  const { error, out, err } = await new Promise<{ error: Error | null; out: string; err: string }>((resolve) => {
    execFile(command, args, { env: { ...clean(), ...env }, cwd }, (error, out, err) => resolve({ error, out, err }));
  });
  expect(error, out + err).toBeNull();
  return out;
}

it("runs a model of the hub, and the bundled one", async () => {
  const files = Object.fromEntries(readdirSync(MODEL).map((name) => [name, readFileSync(join(MODEL, name))]));
  const hub = await startFakeHub("Qwen/Qwen3-0.6B", files);
  try {
    const env = { HF_ENDPOINT: hub.endpoint, HF_HUB_CACHE: join(folder, "hub"), FLYWHEEL_PORT: "0" };
    const out = await output("bash", ["-e", "-c", block("sh")], env, ROOT);
    expect(out.trim().split("\n").length).toBeGreaterThan(1);
    expect(hub.requests.some(({ path }) => path.endsWith("/model.safetensors"))).toBe(true);
  } finally {
    await hub.close();
  }
});

/** Every step prints the mean rewards of all steps so far. They must rise. */
function expectToLearn(printed: string): void {
  const last = printed
    .trim()
    .split("\n")
    .at(-1)!
    .match(/[\d.]+/g)!
    .map(Number);
  expect(last).toHaveLength(8);
  expect(last.at(-1)!).toBeGreaterThan(last[0]!);
}

const client = () => ({ OPENAI_BASE_URL: `${server.url}/v1`, OPENAI_API_KEY: "k" });

const python = process.env.FLYWHEEL_OPENAI_PYTHON ?? "python3";
const hasClient = spawnSync(python, ["-c", "import openai"]).status === 0;
needing(need("FLYWHEEL_OPENAI_PYTHON, a Python with the package openai", hasClient)).it(
  "trains a policy in Python",
  async () => {
    expectToLearn(await output(python, ["-c", block("python")], client()));
  },
);

it("trains a policy in TypeScript", async () => {
  // another policy than the one of Python
  writeFileSync(join(folder, "train.ts"), block("ts").replaceAll('"unsure"', '"undecided"'));
  const tsc = ["--module", "nodenext", "--target", "es2022", "--strict", "--skipLibCheck", "--ignoreConfig"];
  const types = ["--typeRoots", join(ROOT, "node_modules/@types"), "--types", "node"];
  writeFileSync(join(folder, "package.json"), '{"type": "module"}');
  await output(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), ...tsc, ...types, "train.ts"], {});
  expectToLearn(await output(process.execPath, ["train.js"], client()));
});
