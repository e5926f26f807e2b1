// Reads the keys of the server from the environment of the processes that it starts: the embedded trainer and whatever
// --trainer-command starts. A trainer runs on other machines, and its environment may be shown by Ray or Slurm.
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import { createTrainer } from "../../src/app/trainer.ts";
import { loadConfig } from "../../src/config/load.ts";
import type { OptionName } from "../../src/config/options.ts";
import { createLog } from "../../src/observe/log.ts";
import { childEnvironment } from "../../src/system/child-process.ts";
import type { Trainer } from "../../src/training/contract.ts";
import { MODEL } from "../support/cli-process.ts";
import { LINUX, needing } from "../support/needs.ts";

const SECRETS = {
  FLYWHEEL_API_KEY: "sk-of-clients",
  FLYWHEEL_DATABASE: "postgres://u:sk-of-database@h/d",
  FLYWHEEL_ENGINE_API_KEY: "sk-of-engines",
  VLLM_API_KEY: "sk-of-vllm",
  HF_TOKEN: "sk-of-hub",
  PGPASSWORD: "sk-of-postgres",
  AWS_SECRET_ACCESS_KEY: "sk-of-s3",
  RAY_AUTH_TOKEN: "sk-of-ray",
  SLURM_JWT: "sk-of-slurm",
  TORCH_HUB_TOKEN: "sk-of-torch",
  SOME_NEW_THING: "sk-of-tomorrow",
};
const NEEDED = {
  CUDA_VISIBLE_DEVICES: "1",
  NCCL_SOCKET_IFNAME: "eth0",
  LD_LIBRARY_PATH: "/opt/cuda/lib64",
  PYTORCH_CUDA_ALLOC_CONF: "expandable_segments:True",
  TORCHINDUCTOR_CACHE_DIR: "/cache",
  OMP_NUM_THREADS: "1",
  HF_HOME: "/models",
  RAY_ADDRESS: "head:6379",
  SLURM_JOB_ID: "7",
};

let trainer: Trainer | null = null;
afterEach(async () => {
  await trainer?.close();
  vi.unstubAllEnvs();
});

function serverWith(flags: Partial<Record<OptionName, unknown>>): Trainer {
  for (const [name, value] of Object.entries({ ...SECRETS, ...NEEDED })) vi.stubEnv(name, value);
  const data = mkdtempSync(join(tmpdir(), "flywheel-secrets-"));
  trainer = createTrainer(
    loadConfig({ env: {}, flags: { data, ...flags } }),
    createLog({ level: "error", format: "text" }),
  );
  return trainer;
}

const LIMITS = {
  baseModel: MODEL,
  weights: "float32",
  positionsPerBlock: 16,
  activationBytes: 1e9,
  maxSequenceLength: 64,
};

it("hides them from a trainer command, which gets what GPUs, Python and launchers need", async () => {
  const file = join(mkdtempSync(join(tmpdir(), "flywheel-secrets-")), "environment");
  const asked = serverWith({ trainer: "torch", trainerCommand: `sh -c 'env > ${file}; exit 3'` }).limits({
    ...LIMITS,
    rank: 2,
  } as never);
  await expect(asked).rejects.toThrow("code 3");
  const found = readFileSync(file, "utf8");
  expect(found).not.toMatch(/sk-of/);
  for (const [name, value] of Object.entries(NEEDED)) expect(found).toContain(`${name}=${value}\n`);
  expect(found).toMatch(/^PATH=/m);
});

it("passes on what --trainer-env names, and no key behind a *", () => {
  for (const [name, value] of Object.entries({ ...SECRETS, FI_PROVIDER: "efa", MY_A: "1", MY_KEY: "2" }))
    vi.stubEnv(name, value);
  const passed = childEnvironment(["HF_TOKEN", "MY_*"], { OWN: "3" });
  expect(passed).toMatchObject({ HF_TOKEN: "sk-of-hub", FI_PROVIDER: "efa", MY_A: "1", OWN: "3" });
  expect(Object.keys(passed).filter((name) => name in SECRETS || name === "MY_KEY")).toEqual(["HF_TOKEN"]);
});

needing(LINUX).it("hides them from the embedded trainer", async () => {
  const train = serverWith({}).train(
    { baseModel: MODEL, weights: "float32" } as never,
    () => {},
    new AbortController().signal,
  );
  train.catch(() => {}); // there is nothing to train
  const children = () =>
    readdirSync("/proc").filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("trainer-entry") && parentOf(pid) === process.pid;
      } catch {
        return false; // it has ended, or is none
      }
    });
  await expect.poll(children, { timeout: 20_000 }).toHaveLength(1);
  const found = readFileSync(`/proc/${children()[0]}/environ`, "utf8");
  expect(found).not.toMatch(/sk-of/);
  expect(found).toContain("OMP_NUM_THREADS=1");
  await train.catch(() => {});
});

function parentOf(pid: string): number {
  return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}
