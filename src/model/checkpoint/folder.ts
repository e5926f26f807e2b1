// Checks whether a name given by a person is a folder.
import { statSync } from "node:fs";

/** System errors for names that cannot be a folder: a part is a file, it is too long, or links form a circle. */
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
