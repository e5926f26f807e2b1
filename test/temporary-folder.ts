// Everything a test run writes to the system's temporary folder goes into one folder of its own, which is removed at the
// end, also when tests fail.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export default function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), "flywheel-tests-"));
  for (const name of ["TMPDIR", "TEMP", "TMP"]) process.env[name] = folder;
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}
