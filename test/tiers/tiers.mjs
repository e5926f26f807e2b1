// The tiers of the tests and their steps. Each is a command; `skip` says what it needs and this machine lacks. Steps in a list run at
// the same time: each of them keeps one core busy.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";

const IS_WINDOWS = process.platform === "win32";
const has = (command, ...args) => spawnSync(command, args, { stdio: "ignore" }).status === 0;
const binary = (name) => join("node_modules", ".bin", name);
const npm = (name, ...args) => ({ name, command: "npm", args });
const node = (name, ...args) => ({ name, command: process.execPath, args });

/** Tests of vitest.config.ts. Its reporter counts them. */
function tests(name, tier, { runner = process.execPath, before = [], args = [], env = {} } = {}) {
  const vitest = join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs");
  const reporters = ["--reporter=default", "--reporter=./test/tiers/reporter.ts", "--silent=passed-only"];
  const command = [...before, runner, vitest, "run", ...reporters, ...args];
  return { name, command: command[0], args: command.slice(1), env: { FLYWHEEL_TIER: tier, ...env } };
}

const build = { ...npm("build", "run", "build", "--silent"), first: true };

export const TIERS = {
  test: () => [
    build,
    { name: "lint", command: binary("biome"), args: ["check", "."] },
    ...["tsconfig.json", "web", "bench/tsconfig.json"].map((project) => ({
      name: `types of ${project}`,
      command: binary("tsc"),
      args: ["-p", project, "--noEmit"],
    })),
    tests("unit, wire and reference tests", "test"),
  ],

  system: () => [
    build,
    { ...npm("clients", "ci", "--prefix", "test/clients", "--silent"), first: true },
    { name: "types of test/clients", command: binary("tsc"), args: ["-p", "test/clients", "--noEmit"] },
    [kernels(), simulation("--minutes", "2")],
    tests("system tests", "system"),
  ],

  matrix: () => [
    build,
    { ...npm("clients", "ci", "--prefix", "test/clients", "--silent"), first: true },
    peers(),
    tests("families, weights, faults, torch, fuzz", "matrix", { env: torchPython() }),
    [simulation("--seeds", "1000"), ...emulated()],
    ...otherNodes(),
    knownVulnerabilities(),
  ],
};

/** Servers under faults in a simulated world. It counts its seeds. */
function simulation(...args) {
  return npm("simulated worlds", "run", "simulate", "--silent", "--", ...args);
}

/** The tests of the kernels in C. */
function kernels() {
  const step = node("kernels in C", "native/test/run.mjs");
  return process.platform === "linux" && !has("gcc", "--version") ? { ...step, skip: "gcc" } : step;
}

/** llama.cpp, which the tests of its files compare with. */
function peers() {
  const step = npm("llama.cpp", "ci", "--prefix", "bench/peers", "--ignore-scripts", "--silent");
  return has("npm", "view", "--silent", "node-llama-cpp")
    ? step
    : { ...step, skip: "node-llama-cpp from the npm registry" };
}

/** The Python of the tests of the PyTorch trainer, if nobody names another: this machine's, where it has what they need. */
function torchPython() {
  const given = process.env.FLYWHEEL_TORCH_PYTHON;
  if (given !== undefined || !has("python3", "-c", "import torch, transformers")) return {};
  return { FLYWHEEL_TORCH_PYTHON: "python3" };
}

/** What the runtime computes on processors without AVX-512: qemu emulates one. A child process would leave the emulation. */
function emulated() {
  if (process.platform !== "linux" || process.arch !== "x64") return [];
  const step = tests("equal bits on an emulated Haswell", "", {
    before: ["qemu-x86_64-static", "-cpu", "Haswell"],
    args: [
      "--project=all",
      "--pool=threads",
      "--testTimeout=3600000",
      "test/reference/batch-invariance.test.ts",
      "-t",
      "llama",
    ],
  });
  return [has("qemu-x86_64-static", "--version") ? step : { ...step, skip: "qemu-user-static" }];
}

/** The first tier on later releases of Node: npm has their programs. */
function otherNodes() {
  const program = `node-${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;
  return [24].map((major) => {
    const folder = mkdtempSync(join(tmpdir(), "flywheel-node-"));
    const step = tests(`unit, wire and reference tests on Node ${major}`, "test", {
      runner: join(folder, "node_modules", program, "bin", process.platform === "win32" ? "node.exe" : "node"),
    });
    const isHere = has("npm", "install", "--silent", "--prefix", folder, `${program}@${major}`);
    return isHere ? step : { ...step, skip: `${program}@${major} from the npm registry` };
  });
}

/** npm asks the registry what is known of the packages that users install. */
export function knownVulnerabilities(env = process.env) {
  const step = npm("known vulnerabilities", "audit", "--omit=dev");
  const { stdout } = spawnSync("npm", ["audit", "--omit=dev", "--json"], { encoding: "utf8", env, shell: IS_WINDOWS });
  return stdout?.includes('"vulnerabilities"') ? step : { ...step, skip: "a registry that answers npm audit" };
}

/** Programs under another name than the need. */
const PROGRAMS = {
  Chromium: ["chromium-headless-shell", "chromium"],
  "qemu-user-static": ["qemu-x86_64-static"],
};

/** Whether this machine has what a test or a step said that it lacks: a program of that name on the path, or the system. */
export function isHere(need, { PATH = "" } = process.env) {
  if (need === "Linux") return process.platform === "linux";
  const folders = PATH.split(delimiter).filter((folder) => folder !== "");
  const programs = PROGRAMS[need] ?? (/^[\w-]+$/.test(need) ? [need] : []);
  return programs.some((program) => folders.some((folder) => existsSync(join(folder, program))));
}

/** What was skipped although the machine could run it counts as failed. Several needs are separated by commas. */
export function judged({ skipped, failed, failures, ...counts }, env = process.env) {
  const could = Object.entries(skipped).filter(([needs]) => needs.split(", ").every((need) => isHere(need, env)));
  return {
    ...counts,
    skipped: Object.fromEntries(
      Object.entries(skipped).filter((entry) => !could.some(([needs]) => needs === entry[0])),
    ),
    failed: failed + could.reduce((sum, [, tests]) => sum + tests, 0),
    failures: [...failures, ...could.map(([needs, tests]) => `${tests} skipped for want of ${needs}, which is here`)],
  };
}
