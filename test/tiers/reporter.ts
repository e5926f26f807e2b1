// Writes what a run of vitest counted, for run.mjs, to the file that FLYWHEEL_TIER_COUNTS names. A test that was skipped without
// a need in its name (test/support/needs.ts) counts as failed: nobody would notice it.
import { writeFileSync } from "node:fs";
import type { Reporter, SerializedError, TestModule } from "vitest/node";

const NEED = /\[needs ([^\]]+)\]/g;

export interface Counts {
  passed: number;
  failed: number;
  /** How many tests were skipped, by what they need. */
  skipped: Record<string, number>;
  /** Names of what failed. */
  failures: string[];
}

export default class CountsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const counts: Counts = { passed: 0, failed: 0, skipped: {}, failures: [] };
    const fail = (name: string) => {
      counts.failed++;
      counts.failures.push(name);
    };
    for (const module of modules) {
      const file = module.relativeModuleId;
      const isBroken =
        module.errors().length > 0 || [...module.children.allSuites()].some((suite) => suite.errors().length > 0);
      if (isBroken) fail(file);
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        const needs = [...test.fullName.matchAll(NEED)].map(([, what]) => what!);
        if (state === "passed") counts.passed++;
        else if (state !== "skipped") fail(`${file}: ${test.fullName}${state === "pending" ? " did not end" : ""}`);
        else if (needs.length === 0) fail(`${file}: ${test.fullName} is skipped, and does not say what it needs`);
        else {
          const what = needs.join(", ");
          counts.skipped[what] = (counts.skipped[what] ?? 0) + 1;
        }
      }
    }
    for (const error of errors) fail(`outside of tests: ${error.message}`);
    writeFileSync(process.env.FLYWHEEL_TIER_COUNTS!, JSON.stringify(counts));
  }
}
