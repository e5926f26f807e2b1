// Writes files that must survive a crash: whole or not at all, and on the disk when the call returns. The pattern:
// write to a temporary name beside the target, fsync it, rename it into place, fsync the folder.

import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Replaces `path` by the concatenation of `parts`, atomically and durably. `mode`: who may read it, from the beginning. */
export function writeFileDurably(path: string, parts: Iterable<Uint8Array>, mode?: number): void {
  const temporary = temporaryBeside(path);
  try {
    writeNewFile(temporary, parts, mode);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

/** A fresh name in the same folder (so the same file system) that no checkpoint reader picks up. */
export function temporaryBeside(path: string): string {
  return join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}.tmp`);
}

/** Whether `temporaryBeside` made this name. Such a file found at a start was cut off by a crash. */
export function isTemporaryName(name: string): boolean {
  return name.startsWith(".") && name.endsWith(".tmp");
}

/** Makes renames and new files in a folder durable. */
export function syncFolder(folder: string): void {
  // Windows cannot open folders; its file systems order these operations themselves.
  if (process.platform === "win32") return;
  const descriptor = openSync(folder, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Creates `path`, which must not exist, and syncs its content. */
export function writeNewFile(path: string, parts: Iterable<Uint8Array>, mode?: number): void {
  const descriptor = openSync(path, "wx", mode);
  try {
    for (const part of parts) {
      let written = 0;
      while (written < part.length) written += writeSync(descriptor, part, written, part.length - written);
    }
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
