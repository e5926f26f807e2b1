// Files that survive a crash, and what the system allows.

import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  type Dirent,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

// Opens a file for reading without blocking: a named pipe in its place would wait for a writer that never comes.

/** Returns a descriptor. The caller checks that it is a regular file. Windows has neither such pipes nor the flag. */
export function openFile(path: string): number {
  return openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
}

// How many files and sockets this process may have open.

/** Known on Linux only; elsewhere there is no bound to respect. */
export function mostOpenFiles(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

// Writes files that must survive a crash: whole or not at all, and on the disk when the call returns. The pattern:
// write to a temporary name beside the target, fsync it, rename it into place, fsync the folder.

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

/** Makes a folder and those above it that are missing. They are on the disk when the call returns. */
export function makeFolderDurably(path: string, mode?: number): void {
  const first = mkdirSync(path, { recursive: true, mode });
  if (first === undefined) return;
  for (let folder = dirname(resolve(path)); ; folder = dirname(folder)) {
    syncFolder(folder);
    if (folder === dirname(first)) return;
  }
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

// How much a folder holds, and how much more fits.

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
