// Tells a GGUF file from a checkpoint folder, by its name or by being a file.
import { statSync } from "node:fs";
import { isFolder } from "../checkpoint/folder.ts";

/** `place`: a name given by a person. A file needs no extension: other programs keep theirs under hashes. */
export function isGguf(place: string): boolean {
  if (place.includes("\0") || isFolder(place)) return false;
  if (/\.gguf$/i.test(place)) return true;
  try {
    return statSync(place).isFile();
  } catch {
    return false;
  }
}
