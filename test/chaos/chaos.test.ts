// A part of `npm run chaos`: bounded by faults, so that a slow machine has as many. FLYWHEEL_TEST_FAULTS=60 makes more of them.

import { rmSync } from "node:fs";
import { expect, it } from "vitest";
import { chaos } from "./chaos.ts";

const SEED = 24;
const FAULTS = Number(process.env.FLYWHEEL_TEST_FAULTS ?? 10);

it("two API servers and two workers keep every promise while servers and the database fail", async () => {
  const told: string[] = [];
  const report = await chaos({ seed: SEED, ms: 600_000, faults: FAULTS, say: (what) => told.push(what) });
  // with what happened, so that a failure can be understood
  expect(report.wrong, told.join("\n")).toEqual([]);
  expect(report.faults).toBeGreaterThan(5);
  expect(report.jobs.COMPLETED).toBeGreaterThan(5);
  expect(report.gradientSteps).toBeGreaterThan(10);
  expect(report.comparedPolicies).toBeGreaterThan(0);
  rmSync(report.folder, { recursive: true, force: true });
});
