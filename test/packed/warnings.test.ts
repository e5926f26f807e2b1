// npm has nothing to warn of: not at `npm ci` in a checkout, nor when somebody installs the package.

import { cpSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { npm, packed } from "./packed.ts";

const NO_WARNING = /^(?![\s\S]*npm warn)/i;

describe.each([
  ["the checkout", ".", ["package.json", "package-lock.json", ".npmrc", "packaging"]],
  ["the clients of the tests", "test/clients", ["package.json", "package-lock.json", ".npmrc"]],
])("npm ci of %s", (_name, from, paths) => {
  it("warns of nothing: if it does for an SDK that works on this Node, run node packaging/lock-engines.mjs", async () => {
    const folder = mkdtempSync(join(tmpdir(), "flywheel-ci-"));
    for (const path of paths) cpSync(join(from, path), join(folder, path), { recursive: true });
    const { out, err } = await npm(["ci", "--dry-run", "--ignore-scripts"], folder);
    expect(out).toMatch(/added \d+ packages/);
    expect(err).toMatch(NO_WARNING);
  });

  it("knows what it installs: every package of the registry has its digest, and none names where it lies", () => {
    const lock = JSON.parse(readFileSync(join(from, "package-lock.json"), "utf8"));
    const installed: [string, { integrity?: string; link?: boolean; resolved?: string }][] = Object.entries(
      lock.packages,
    );
    const fromRegistry = installed.filter(([path, entry]) => path.includes("node_modules/") && entry.link !== true);
    expect(fromRegistry.length).toBeGreaterThan(40);
    for (const [path, entry] of fromRegistry) {
      expect(entry.integrity, path).toMatch(/^sha512-/);
      expect(entry.resolved, path).toBeUndefined();
    }
  });
});

it("the install of the packed tarball", async () => {
  const { installed } = await packed();
  expect(installed.out).toMatch(/added \d+ packages/);
  expect(installed.err).toMatch(NO_WARNING);
});
