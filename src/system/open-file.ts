// Opens a file for reading without waiting: a pipe in its place would wait for a writer that never comes.

import { constants, openSync } from "node:fs";

/** A descriptor; whether it is a regular file is for the caller to look at. Windows has no such pipes, and no such flag. */
export function openFile(path: string): number {
  return openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
}
