// Whether a path is a file that can be seen now.

import { statSync } from "node:fs";

export function hasFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
