// Reads the header of a GGUF file from its beginning, number by number and text by text. Counts and lengths come from the
// file, so each is compared with the bytes that are left before anything is read for it.

import { CheckpointError } from "../checkpoint/checkpoint-error.ts";
import type { CheckpointFile } from "../checkpoint/checkpoint-file.ts";

/** Larger than any real header: the vocabularies and merges of 2026 take up to 30 MB. */
export const MAX_HEADER_BYTES = 256 * 2 ** 20;
const FIRST_READ_BYTES = 2 ** 20;

export class HeaderCursor {
  position = 0;
  readonly #file: CheckpointFile;
  /** The file from its beginning, as far as it was read. */
  #bytes: Buffer = Buffer.alloc(0);

  constructor(file: CheckpointFile) {
    this.#file = file;
  }

  uint32(): number {
    const at = this.skip(4);
    return this.#bytes.readUInt32LE(at);
  }

  /** Larger numbers than 2^53 are not exact, but larger than whatever they are compared with. */
  uint64(): number {
    const at = this.skip(8);
    return this.#bytes.readUInt32LE(at) + this.#bytes.readUInt32LE(at + 4) * 2 ** 32;
  }

  /** A length and as many bytes of UTF-8. */
  text(): string {
    const length = this.uint64();
    const at = this.skip(length);
    return this.#bytes.toString("utf8", at, at + length);
  }

  /** Goes on by `count` bytes, which are then read. Gives the position of the first. */
  skip(count: number): number {
    const limit = Math.min(this.#file.bytes, MAX_HEADER_BYTES);
    if (count > limit - this.position) {
      const problem =
        this.#file.bytes <= MAX_HEADER_BYTES
          ? `ends inside its header, at byte ${this.#file.bytes} (truncated: an incomplete download?)`
          : `claims a header of more than ${MAX_HEADER_BYTES} bytes`;
      throw new CheckpointError(this.#file.path, problem);
    }
    const at = this.position;
    this.position += count;
    if (this.position > this.#bytes.length) this.#readUpTo(this.position, limit);
    return at;
  }

  /** The bytes of the header from `begin` to the current position. */
  bytesFrom(begin: number): Buffer {
    return this.#bytes.subarray(begin, this.position);
  }

  #readUpTo(end: number, limit: number): void {
    const grown = Buffer.alloc(Math.min(limit, Math.max(end, 2 * this.#bytes.length, FIRST_READ_BYTES)));
    this.#bytes.copy(grown);
    this.#file.readAt(this.#bytes.length, grown.subarray(this.#bytes.length));
    this.#bytes = grown;
  }
}
