// Everything a test run writes to the system's temporary folder goes into one folder of its own, which is removed at the
// end, also when tests fail.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

const PREFIX = "flywheel-tests-";

/** The folder of this test run; null outside of one. */
export function runFolder(): string | null {
  return basename(tmpdir()).startsWith(PREFIX) ? tmpdir() : null;
}

/** Called for every project of the run. One folder is enough, and nested ones would make paths too long for sockets. */
export default function setup(): () => void {
  if (runFolder() !== null) return () => {};
  const folder = mkdtempSync(join(tmpdir(), PREFIX));
  // A PostgreSQL server that runs as "nobody" has its folder in here. Folders of others stay closed to it.
  chmodSync(folder, 0o711);
  for (const name of ["TMPDIR", "TEMP", "TMP"]) process.env[name] = folder;
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}
