import { existsSync, mkdtempSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openDataDir } from "./data-dir.ts";
import { DataDirError } from "./data-dir-error.ts";

it("makes every folder of the path, for its owner only", () => {
  const dir = join(mkdtempSync(join(tmpdir(), "flywheel-data-")), "a", "b");
  openDataDir(dir).close();
  openDataDir(dir).close();
  for (const made of [dir, join(dir, "..")]) expect(statSync(made).mode & 0o077).toBe(0);
});

// There a folder that exists has no room for new ones, which looks as if it did not exist.
it.runIf(existsSync("/proc/self"))("says so where no folder can be made", () => {
  for (const dir of ["/proc/flywheel", "/proc/flywheel/data", "/proc/self/data"]) {
    expect(() => openDataDir(dir), dir).toThrow(DataDirError);
  }
});
