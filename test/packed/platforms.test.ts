// What the package takes on other platforms, with everything that it depends on. install.test.ts measures it on this one.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { MOST_BYTES, npm, packed, sizeOf } from "./packed.ts";

it.each([
  ["linux", "x64", "glibc", "linux-x64-gnu"],
  ["linux", "arm64", "glibc", "linux-arm64-gnu"],
  ["darwin", "arm64", "", "darwin-arm64"],
  ["win32", "x64", "", "win32-x64-msvc"],
])("the package takes at most 250 MB on %s %s, with what npm chooses there", async (os, cpu, libc, sqlite) => {
  const made = await packed();
  const folder = mkdtempSync(join(tmpdir(), "flywheel-platform-"));
  const { version, dependencies } = JSON.parse(readFileSync(join(made.folder, "package.json"), "utf8"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "sizes", version, dependencies }));
  const platform = [`--os=${os}`, `--cpu=${cpu}`, ...(libc === "" ? [] : [`--libc=${libc}`])];
  await npm(["install", "--ignore-scripts", ...platform], folder);
  const modules = join(folder, "node_modules");
  expect(readdirSync(join(modules, "@libsql"))).toContain(sqlite);
  const size = sizeOf(made.folder) + sizeOf(modules);
  console.log(`${os}-${cpu}: ${(size / 1e6).toFixed(0)} MB`);
  expect(size).toBeLessThanOrEqual(MOST_BYTES);
  rmSync(folder, { recursive: true });
});
