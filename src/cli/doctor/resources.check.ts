// Checks of what a server takes from its machine: room on the disk, and cores. `flywheel status` shows the same findings.

import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { usableCores } from "../../app/usable-cores.ts";
import { freeBytes } from "../../system/files.ts";
import { bytesText } from "../../system/text.ts";
import { type Finding, ok, warning } from "./finding.ts";

const LITTLE_DISK = 2e9;

export function checkDisk(check: string, folder: string, what: string): Finding {
  const free = freeBytes(existing(folder));
  const seen = `${bytesText(free)} free for ${what} in ${folder}`;
  return free < LITTLE_DISK ? warning(check, seen, "Free some space, or choose another folder.") : ok(check, seen);
}

/** `threads`: null = as many as there are cores. */
export function checkThreads(threads: number | null): Finding {
  const cores = usableCores();
  if (threads === null || threads <= cores) return ok("threads", `${threads ?? cores} of ${cores} usable cores`);
  return warning("threads", `--threads ${threads} is more than the ${cores} usable cores`, `--threads ${cores}`);
}

/** The folder, or the nearest one above it that exists. */
export function existing(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : existing(dirname(folder));
}
