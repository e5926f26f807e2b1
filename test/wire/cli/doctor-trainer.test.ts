// `flywheel doctor --trainer torch` with a fake Python that is healthy or has one fault, and with a real one where
// FLYWHEEL_TORCH_PYTHON names it.

import { chmodSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Finding } from "../../../src/cli/doctor/finding.ts";
import { checkTrainer, readCommand, type TrainerFacts } from "../../../src/cli/doctor/trainer.check.ts";
import { loadConfig } from "../../../src/config/load.ts";
import type { Config } from "../../../src/config/options.ts";
import { MODEL, run } from "../../support/cli-process.ts";
import { needing, TORCH } from "../../support/needs.ts";

const FAKE = fileURLToPath(new URL("../../support/trainer-process.mjs", import.meta.url));
const REAL = process.env.FLYWHEEL_TORCH_PYTHON;
const GIB = 2 ** 30;
/** What a machine with one large GPU tells about a model of 8 B parameters. */
const HEALTHY: TrainerFacts = {
  python: "3.12.1",
  executable: "/opt/venv/bin/python3",
  packages: {
    torch: { version: "2.11.0+cu130", error: null },
    transformers: { version: "5.17.0", error: null },
    safetensors: { version: "0.8.0", error: null },
  },
  devices: [{ name: "NVIDIA H200", freeBytes: 139 * GIB, totalBytes: 140 * GIB }],
  model: {
    ...{ error: null, type: "qwen3", parameters: 8.2e9, weightBytes: 16.4e9, adapterBytes: 7e8 },
    ...{ rowBytes: 900_000, memoryShare: 0.85, positions: 32_768 },
  },
};

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "doctor-"));
  vi.stubEnv("PATH", `${folder}:${process.env.PATH}`);
  install(HEALTHY);
});
afterEach(() => vi.unstubAllEnvs());

/** Puts a python3 on the PATH that tells these facts, and a torchrun that it runs: the fake trainer. */
function install(facts: Partial<TrainerFacts> | null, version = "3.12.1"): void {
  writeFileSync(join(folder, "facts.json"), `a library prints this\n${JSON.stringify({ ...HEALTHY, ...facts })}\n`);
  const check = facts === null ? "echo 'SyntaxError: invalid syntax' >&2; exit 1" : `cat "${folder}/facts.json"`;
  const python = [
    "#!/bin/sh",
    'case "$1" in',
    `--version) echo "Python ${version}" ;;`,
    `-m) ${check} ;;`,
    `*) exec "${process.execPath}" "${FAKE}" ;;`,
    "esac",
  ];
  writeFileSync(join(folder, "python3"), `${python.join("\n")}\n`);
  writeFileSync(join(folder, "torchrun"), `#!${folder}/python3\nimport sys\n`);
  for (const name of ["python3", "torchrun"]) chmodSync(join(folder, name), 0o755);
}

const config = (changes: Partial<Config> = {}): Config => ({
  ...loadConfig({ env: {} }),
  ...{ trainer: "torch", dtype: "float32", trainerDtype: "float32" },
  ...changes,
});

async function findings(changes: Partial<Config> = {}): Promise<Finding[]> {
  const found: Finding[] = [];
  for await (const finding of checkTrainer(config(changes), MODEL)) found.push(finding);
  return found;
}

/** What is not ok, by check. */
async function complaints(changes: Partial<Config> = {}): Promise<Record<string, string>> {
  const found = (await findings(changes)).filter(({ status }) => status !== "ok");
  return Object.fromEntries(
    found.map(({ check, status, detail, advice }) => [check, `${status}: ${detail} → ${advice}`]),
  );
}

it("finds nothing wrong with an environment that is fit, starts the trainer, and is documented", async () => {
  const found = await findings();
  expect(found.filter(({ status }) => status !== "ok")).toEqual([]);
  const names = ["weights", "command", "python", "torch", "transformers", "safetensors", "gpu", "trained-model"];
  expect(found.map(({ check }) => check)).toEqual([...names, "memory", "launch"]);
  expect(found.at(-1)!.detail).toMatch(/^it started in [\d.]+ s; its longest sequence has 1000 tokens$/);
  const page = readFileSync(new URL("../../../docs/reference/doctor.md", import.meta.url), "utf8");
  expect(found.filter(({ check }) => !page.includes(`\`${check}\``))).toEqual([]);
});

describe("one fault", () => {
  it("weights: the engine serves rounded ones, or other ones than the trainer's", async () => {
    expect((await complaints({ dtype: "auto" })).weights).toMatch(
      /^wrong: the engine serves int8.*add --dtype float32/,
    );
    expect((await complaints({ trainerDtype: "bfloat16" })).weights).toMatch(/^warning: .*--trainer-dtype float32/);
    const remote = { engineUrl: ["http://127.0.0.1:9"], dtype: "auto", trainerDtype: "bfloat16" } as const;
    expect(await complaints({ ...remote, engineUrl: [...remote.engineUrl] })).toEqual({});
  });

  it("command: it is not there; the usual Python is looked at", async () => {
    install({ packages: { ...HEALTHY.packages, torch: { version: null, error: "No module named 'torch'" } } });
    const found = await complaints({ trainerCommand: "no-such-torchrun -m flywheel_trainer" });
    expect(found).toEqual({
      command: expect.stringMatching(/^wrong: no-such-torchrun is not on the PATH → .*--trainer-command/),
      torch: expect.stringMatching(/^wrong: .*No module.*python3 -m pip install "torch>=2\.6"$/),
    });
  });

  it("python: too old, broken, or missing", async () => {
    install({}, "3.10.9");
    expect(await complaints()).toEqual({ python: expect.stringMatching(/^wrong: 3\.10\.9 .*too old → .*3\.11/) });
    install(null);
    expect(await complaints()).toEqual({ python: expect.stringMatching(/^wrong: .*SyntaxError: invalid syntax/) });
    writeFileSync(join(folder, "torchrun"), `#!${folder}/python3.99\n`);
    expect((await complaints()).python).toMatch(/^wrong: .*python3\.99 fails: .*ENOENT/);
  });

  it.each([
    ["torch", "2.5.1", /^wrong: 2\.5\.1 is too old → Update it: .*torch>=2\.6/],
    ["transformers", "4.57.0", /^wrong: 4\.57\.0 is too old/],
    ["transformers", null, /^wrong: cannot be imported: gone → Install it/],
    ["safetensors", null, /^wrong: cannot be imported: gone → Install it/],
  ] as const)("%s %s", async (name, version, message) => {
    const packages = { ...HEALTHY.packages, [name]: { version, error: version === null ? "gone" : null } };
    install({ packages, ...(version === null ? { model: null } : {}) });
    expect(await complaints()).toEqual({ [name]: expect.stringMatching(message) });
  });

  it("gpu: there is none", async () => {
    const torch = { version: "2.13.0+cpu", error: null };
    install({ devices: [], packages: { ...HEALTHY.packages, torch } });
    const trainingMemoryBytes = 100 * GIB;
    expect((await complaints({ trainingMemoryBytes })).gpu).toMatch(/^wrong: .*Install a torch with CUDA, or give/);
    const trainerCommand = "torchrun --nproc-per-node=1 -m flywheel_trainer";
    expect((await complaints({ trainingMemoryBytes, trainerCommand })).gpu).toMatch(/^warning: no GPU: it trains on/);
  });

  it("trained-model: its family is not known", async () => {
    install({ model: { error: "models of type gpt2 cannot be trained" } });
    expect(await complaints()).toEqual({ "trained-model": expect.stringMatching(/^wrong: models of type gpt2/) });
  });

  it("memory: nothing fits, or only short sequences; the smallest GPU counts", async () => {
    const gpu = (free: number) => ({ name: "GPU", freeBytes: free * GIB, totalBytes: 80 * GIB });
    install({ devices: [gpu(80), gpu(12)] });
    expect(await complaints()).toEqual({ memory: expect.stringMatching(/16\.4 GB of weights.*do not fit 12\.9 GB/) });
    install({ devices: [gpu(80), gpu(20)] });
    expect((await complaints()).memory).toMatch(/^warning: .*; \d{4} of 32768 tokens fit → Longer sequences are left/);
    expect(await complaints({ maxModelLen: 2048 })).toEqual({});
  });

  it("launch: the trainer does not come up", async () => {
    vi.stubEnv("FAKE_TRAINER_PROTOCOL", "3");
    expect((await complaints({ trainerEnv: ["FAKE_*"] })).launch).toMatch(/^wrong: .*it speaks protocol 3/);
    writeFileSync(join(folder, "launcher"), "#!/bin/sh\necho 'no such host' >&2\nexit 3\n");
    chmodSync(join(folder, "launcher"), 0o755);
    const found = await complaints({ trainerCommand: "launcher --nodes 2" });
    expect(found).toEqual({ launch: expect.stringMatching(/ended with code 3.*→ It wrote: no such host$/) });
  });
});

it("finds the Python behind a command", async () => {
  writeFileSync(join(folder, "long"), `#!/bin/sh\n'''exec' "/very/long/python" "$0" "$@"\n' '''\n`);
  chmodSync(join(folder, "long"), 0o755);
  const python = `${folder}/python3`;
  expect(await readCommand("A=1 B='x y' torchrun --standalone")).toEqual({
    ...{ env: { A: "1", B: "x y" }, program: "torchrun", path: `${folder}/torchrun`, python },
  });
  expect(await readCommand(`env A=2 "${python}" -m flywheel_trainer`)).toMatchObject({ env: { A: "2" }, python });
  expect(await readCommand("long x")).toMatchObject({ python: "/very/long/python" });
  expect(await readCommand("sh -c x")).toMatchObject({ program: "sh", python: null });
});

describe("the command", () => {
  const flags = ["doctor", "--trainer", "torch", "--model", MODEL, "--dtype", "float32", "--trainer-dtype", "float32"];

  it("prints a line for each check, and exits with 0 only if nothing is wrong", async () => {
    const healthy = await run(flags);
    expect(healthy.out).toMatch(/^torchrun --standalone .*\n {2}ok {7}weights /);
    expect(healthy.out).toMatch(/\n {2}10 ok, 0 warning, 0 wrong\n$/);
    expect(healthy.code).toBe(0);
    install({}, "3.9.2");
    const old = await run([...flags, "--json"]);
    expect(old.code).toBe(1);
    expect(JSON.parse(old.out)).toMatchObject({
      ...{ fit: false, replicas: [] },
      trainer: { checks: [{ check: "weights" }, { check: "command" }, { check: "python", status: "wrong" }] },
    });
  }, 60_000);

  it("checks replicas and the trainer together", async () => {
    const { code, out } = await run([...flags, "--engine-url", "http://127.0.0.1:9", "--json"]);
    const { replicas, trainer } = JSON.parse(out);
    expect(replicas).toMatchObject([{ url: "http://127.0.0.1:9", checks: [{ check: "reach", status: "wrong" }] }]);
    expect(trainer.checks.at(-1)).toMatchObject({ check: "launch", status: "ok" });
    expect(code).toBe(1);
  }, 60_000);
});

needing(TORCH).describe("with a real PyTorch", { timeout: 120_000 }, () => {
  it("starts the trainer and knows the model", async () => {
    const found = await findings({ trainerCommand: `"${REAL}" -m flywheel_trainer` });
    expect(found.filter(({ status }) => status === "wrong")).toEqual([]);
    expect(found.find(({ check }) => check === "trained-model")!.detail).toMatch(/^qwen3, \d+ parameters$/);
    expect(found.at(-1)).toMatchObject({ check: "launch", detail: expect.stringMatching("longest sequence has 512") });
  });
});
