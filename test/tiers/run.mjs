// Runs a tier of the tests, and says what ran, how long it took, and what was skipped and why. CONTRIBUTING.md has the tiers.
//   node test/tiers/run.mjs test        npm test
//   node test/tiers/run.mjs sum FILE…   adds up what earlier runs wrote to $FLYWHEEL_TIER_RESULT
import { spawn } from "node:child_process";
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { judged, TIERS } from "./tiers.mjs";

const [what, ...rest] = process.argv.slice(2);
if (what === "sum") report(resultsOf(rest));
else if (TIERS[what] === undefined) throw new Error(`name a tier: ${Object.keys(TIERS).join(", ")}`);
else await runTier(what);

/**
 * The results of a tier's steps: { name, seconds, wall, cpuSeconds, passed, failed, skipped: {why: tests}, failures: [name] }. Steps in
 * a list run at the same time, each on a core of its own: the first has the time of the clock and of the processor for all.
 */
async function runTier(name) {
  const steps = [];
  const file = process.env.FLYWHEEL_TIER_RESULT;
  const earlier = file === undefined ? [] : resultsOf([file]);
  for (const entry of TIERS[name]()) {
    // what the tier before has built is there
    if (entry.first && earlier.some((step) => step.name === entry.name && step.failed === 0)) continue;
    const together = [entry].flat();
    process.stdout.write(`\n── ${name}: ${together.map((step) => step.name).join(", and at the same time ")}\n`);
    const [startedAt, cpuBefore] = [performance.now(), childrenCpuSeconds()];
    const results = await Promise.all(together.map(runStep));
    const whole = { wall: secondsSince(startedAt), cpuSeconds: childrenCpuSeconds() - cpuBefore };
    for (const [i, result] of results.entries()) {
      const times = i === 0 ? whole : { wall: 0, cpuSeconds: 0, beside: results[0].name };
      steps.push({ tier: name, ...judged(result), ...times });
    }
    // What cannot be built cannot be tested.
    if (entry.first && steps.at(-1).failed > 0) break;
  }
  if (file !== undefined) for (const step of steps) appendFileSync(file, `${JSON.stringify(step)}\n`);
  report(steps);
}

function resultsOf(files) {
  const lines = files
    .filter((file) => existsSync(file))
    .flatMap((file) => readFileSync(file, "utf8").trim().split("\n"));
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line));
}

async function runStep({ name, command, args, env = {}, skip }) {
  const nothing = { name, seconds: 0, passed: 0, failed: 0, skipped: {}, failures: [] };
  if (skip !== undefined) {
    console.log(`skipped: needs ${skip}`);
    return { ...nothing, skipped: { [skip]: 1 } };
  }
  const folder = mkdtempSync(join(tmpdir(), "flywheel-tier-"));
  const counts = join(folder, "counts.json");
  const startedAt = performance.now();
  const status = await new Promise((resolve) => {
    const options = { stdio: "inherit", env: { ...process.env, ...env, FLYWHEEL_TIER_COUNTS: counts } };
    const child = spawn(command, args, { ...options, shell: process.platform === "win32" });
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) => resolve(code ?? signal));
  });
  const seconds = secondsSince(startedAt);
  const counted = existsSync(counts) ? JSON.parse(readFileSync(counts, "utf8")) : { passed: status === 0 ? 1 : 0 };
  rmSync(folder, { recursive: true });
  const result = { ...nothing, seconds, ...counted };
  if (status !== 0 && result.failed === 0) {
    result.failed = 1;
    result.failures = [`${name} ended with ${status}`];
  }
  return result;
}

function secondsSince(from) {
  return (performance.now() - from) / 1000;
}

/** Processor time of all children that have ended, and of theirs. Linux only: 0 elsewhere. */
function childrenCpuSeconds() {
  if (process.platform !== "linux") return 0;
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1].split(" ");
  // proc(5): fields 16 and 17, cutime and cstime, in hundredths of a second
  return (Number(fields[13]) + Number(fields[14])) / 100;
}

function report(steps) {
  const total = (key) => steps.reduce((all, step) => all + step[key], 0);
  const skippedIn = (step) => Object.values(step.skipped).reduce((all, tests) => all + tests, 0);
  const clock = (time) => {
    const seconds = Math.round(time);
    return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  };
  const row = (...cells) =>
    console.log(cells.map((cell, i) => (i < 2 ? String(cell).padEnd(i ? 38 : 8) : String(cell).padStart(9))).join(" "));
  console.log("");
  row("tier", "what", "minutes", "CPU", "passed", "failed", "skipped");
  for (const step of steps) {
    const cpu = step.beside === undefined ? clock(step.cpuSeconds) : "in that";
    const name = step.beside === undefined ? step.name : `${step.name}, beside ${step.beside}`;
    row(step.tier, name, clock(step.seconds), cpu, step.passed, step.failed, skippedIn(step));
  }
  const skipped = steps.reduce((all, step) => all + skippedIn(step), 0);
  row("", "together", clock(total("wall")), clock(total("cpuSeconds")), total("passed"), total("failed"), skipped);
  for (const step of steps) {
    for (const [why, tests] of Object.entries(step.skipped))
      console.log(`skipped ${tests} in ${step.name}: needs ${why}`);
  }
  for (const step of steps) for (const failure of step.failures) console.log(`failed in ${step.name}: ${failure}`);
  console.log(`${total("passed")} passed, ${total("failed")} failed, ${skipped} skipped`);
  process.exitCode = total("failed") > 0 || total("passed") === 0 ? 1 : 0;
}
