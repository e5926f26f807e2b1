import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { LINUX, needing } from "../../test/support/needs.ts";
import { OperatorError } from "../errors/faults.ts";
import { StepFolders } from "../training/files/step-folders.ts";
import { lockDataDir, openDataDir } from "./data-dir.ts";

it("creates every folder of the path, readable only by its owner", async () => {
  const dir = join(mkdtempSync(join(tmpdir(), "flywheel-data-")), "a", "b");
  await openDataDir(dir).close();
  await openDataDir(dir).close();
  for (const made of [dir, join(dir, "..")]) expect(statSync(made).mode & 0o077).toBe(0);
});

it("names a file that is in the way of its lock or training folder", () => {
  const dir = mkdtempSync(join(tmpdir(), "flywheel-data-"));
  const lock = join(dir, "server.lock");
  writeFileSync(lock, "this is not the lock of a server, though it has its name");
  expect(() => lockDataDir(dir)).toThrow(OperatorError);
  rmSync(lock);
  mkdirSync(lock);
  expect(() => lockDataDir(dir)).toThrow(`cannot use the data directory ${dir}: server.lock`);
  writeFileSync(join(dir, "training"), "");
  expect(() => new StepFolders(join(dir, "training"))).toThrow(OperatorError);
});

// There a folder that exists has no room for new ones, which looks as if it did not exist.
needing(LINUX).it("says so where no folder can be made", () => {
  for (const dir of ["/proc/flywheel", "/proc/flywheel/data", "/proc/self/data"]) {
    expect(() => openDataDir(dir), dir).toThrow(OperatorError);
  }
});
