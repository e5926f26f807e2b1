// A file of a checkpoint as bytes, whatever its format: opened, checked, read at any place, closed.

import { closeSync, fstatSync, readSync, statSync } from "node:fs";
import { OperatorError } from "../../errors/faults.ts";
import { openFile } from "../../system/files.ts";

// A model or adapter file that cannot be used: missing, damaged, inconsistent or unsupported. The message names the
// file, what was expected, what was found and, where possible, the fix.
export class CheckpointError extends OperatorError {
  override name = "CheckpointError";
  /** The file or folder at fault. */
  readonly file: string;

  constructor(file: string, problem: string, options?: ErrorOptions) {
    super(`${file}: ${problem}`, options);
    this.file = file;
  }
}

// Checks whether a name given by a person is a folder.

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

// Tells a GGUF file from a checkpoint folder, by its name or by being a file.

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

/** Bytes asked of the operating system in one call. */
const MAX_READ_BYTES = 2 ** 30;

export class CheckpointFile {
  readonly path: string;
  readonly bytes: number;
  /** Changes with the file: its place on the disk, its size and its time of writing. */
  readonly identity: string;
  #descriptor: number | null;

  private constructor(path: string, descriptor: number) {
    this.path = path;
    this.#descriptor = descriptor;
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) throw new CheckpointError(path, "not a regular file");
    this.bytes = stat.size;
    this.identity = [stat.dev, stat.ino, stat.size, stat.mtimeMs].join(":");
  }

  /** Opens the file and reads what it is. If `read` throws, the file is closed again. */
  static open<Read>(path: string, read: (file: CheckpointFile) => Read): Read {
    let descriptor: number;
    try {
      descriptor = openFile(path);
    } catch (cause) {
      throw new CheckpointError(path, `cannot be opened (${(cause as Error).message})`, { cause });
    }
    try {
      return read(new CheckpointFile(path, descriptor));
    } catch (error) {
      closeSync(descriptor);
      throw error;
    }
  }

  /** Fills `target` with the bytes from `position` on. */
  readAt(position: number, target: Uint8Array): void {
    if (this.#descriptor === null) throw new CheckpointError(this.path, "is closed");
    for (let filled = 0; filled < target.length; ) {
      const wanted = Math.min(target.length - filled, MAX_READ_BYTES);
      let count: number;
      try {
        count = readSync(this.#descriptor, target, filled, wanted, position + filled);
      } catch (cause) {
        throw new CheckpointError(this.path, `cannot be read (${(cause as Error).message})`, { cause });
      }
      if (count === 0) throw new CheckpointError(this.path, "became shorter while it was read");
      filled += count;
    }
  }

  /** Idempotent. Reading afterwards throws. */
  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
  }
}
