// Whether a name that a person gave is a folder.
import { statSync } from "node:fs";

/** What the system says about names that can be no folder: a part is a file, too long, a circle of links. */
const NO_FOLDER = ["ENOTDIR", "ENAMETOOLONG", "ELOOP"];

export function isFolder(path: string): boolean {
  if (path.includes("\0")) return false;
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  } catch (error) {
    if (NO_FOLDER.includes((error as NodeJS.ErrnoException).code ?? "")) return false;
    throw error;
  }
}
