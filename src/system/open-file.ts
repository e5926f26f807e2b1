// Opens a file for reading without blocking: a named pipe in its place would wait for a writer that never comes.

import { constants, openSync } from "node:fs";

/** Returns a descriptor. The caller checks that it is a regular file. Windows has neither such pipes nor the flag. */
export function openFile(path: string): number {
  return openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
}
