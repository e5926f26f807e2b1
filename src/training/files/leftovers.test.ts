import { existsSync, mkdirSync, mkdtempSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { temporaryBeside } from "../../system/files.ts";
import type { KnownFiles } from "./leftovers.ts";
import { StepFolders } from "./step-folders.ts";

const HOUR_MS = 3_600_000;
const DIGEST = "0123456789ab";

/** `models` has the model "m", whose next step is 3. */
function known(): KnownFiles {
  const model = { folders: new Set([`step-2-${DIGEST}`]), nextStep: 3, interrupted: false };
  return {
    models: new Map([["m", model]]),
    jobs: new Set(["waits", "runs"]),
    running: new Set(["runs"]),
    gradients: new Set(),
    removed: new Set([join("m", `step-1-${DIGEST}`), "deleted"]),
  };
}

it("beside other servers, only what nobody can still be making goes", async () => {
  const root = mkdtempSync(join(tmpdir(), "leftovers-"));
  const workspace = new StepFolders(root);
  const make = (path: string, ageMs: number) => {
    mkdirSync(join(root, path), { recursive: true });
    writeFileSync(join(root, path, "file"), "");
    const time = new Date(Date.now() - ageMs);
    for (const file of [join(root, path, "file"), join(root, path)]) utimesSync(file, time, time);
  };
  const stays = [
    join("models", "m", `step-2-${DIGEST}`),
    join("models", "m", `step-1-${DIGEST}`),
    join("models", "m", ".staging-runs-1"),
    join("models", "deleted", "step-0"),
    join("jobs", "waits"),
    join("jobs", "runs"),
  ];
  const goes = [
    join("models", "m", ".staging-over-1"),
    join("models", "m", ".staging-waits-1"),
    temporaryBeside(join("models", "m", ".staging-over-2")),
    join("models", "m", `step-2-${DIGEST}-2`),
    join("jobs", "over"),
  ];
  const aside = join("models", "m", `step-3-${DIGEST}`);
  for (const path of [...stays, ...goes, aside]) make(path, HOUR_MS - 60_000);
  expect(await workspace.clearLeftovers(known(), HOUR_MS)).toEqual({ removed: [], movedAside: [], unknown: [] });
  for (const path of [...stays, ...goes, aside]) make(path, HOUR_MS + 60_000);
  const { removed, movedAside } = await workspace.clearLeftovers(known(), HOUR_MS);
  expect(removed.sort()).toEqual([...goes].sort());
  expect(movedAside.map(({ from }) => from)).toEqual([aside]);
  expect(stays.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});
