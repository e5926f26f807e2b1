// A file of a checkpoint as bytes, whatever its format: opened, checked, read at any place, closed.

import { closeSync, fstatSync, readSync } from "node:fs";
import { openFile } from "../../system/files.ts";
import { CheckpointError } from "./checkpoint-error.ts";

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
