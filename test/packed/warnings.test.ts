// npm has nothing to warn of: not at `npm ci` in a checkout, nor when somebody installs the package.

import { cpSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { npm, packed } from "./packed.ts";

const NO_WARNING = /^(?![\s\S]*npm warn)/i;

it("npm ci: if this fails for an SDK of the tests that works on this Node, run node packaging/lock-engines.mjs", async () => {
  const folder = mkdtempSync(join(tmpdir(), "flywheel-ci-"));
  for (const path of ["package.json", "package-lock.json", ".npmrc", "packaging"]) {
    cpSync(path, join(folder, path), { recursive: true });
  }
  const { out, err } = await npm(["ci", "--dry-run", "--ignore-scripts"], folder);
  expect(out).toMatch(/added \d+ packages/);
  expect(err).toMatch(NO_WARNING);
});

it("the install of the packed tarball", async () => {
  const { installed } = await packed();
  expect(installed.out).toMatch(/added \d+ packages/);
  expect(installed.err).toMatch(NO_WARNING);
});
