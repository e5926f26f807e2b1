// How much a folder holds, and how much more fits.

import { type Dirent, lstatSync, readdirSync, statfsSync } from "node:fs";
import { join } from "node:path";

/** Bytes that this user may still write to the folder's disk. */
export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

/** Bytes of all files in the folder and below; 0 if there is none. Follows no links, so that a file counts once. */
export function bytesBelow(folder: string): number {
  let bytes = 0;
  for (const entry of entriesOf(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) bytes += bytesBelow(path);
    else if (entry.isFile()) bytes += lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
  }
  return bytes;
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return []; // it went while we looked
    throw error;
  }
}
