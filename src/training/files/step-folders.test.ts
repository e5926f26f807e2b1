import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { StepFolders } from "./step-folders.ts";

it("leaves the files of a newer attempt to the server that makes it", () => {
  const workspace = new StepFolders(mkdtempSync(join(tmpdir(), "workspace-")));
  const first = workspace.beginAttempt("job", 1);
  const third = workspace.beginAttempt("job", 3);
  expect(existsSync(first.folder)).toBe(false);
  writeFileSync(third.batch, "");
  // a server that was paused since it claimed the job, and has not heard that it lost it
  const second = workspace.beginAttempt("job", 2);
  expect([second, third].map(({ folder }) => existsSync(folder))).toEqual([true, true]);
  expect(existsSync(third.batch)).toBe(true);
});
