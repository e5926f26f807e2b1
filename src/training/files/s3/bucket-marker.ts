// The marker of a bucket (claim-storage.ts). The check also finds out whether the server keeps what storage relies on: that
// a write of a new object fails if the object exists.

import { randomUUID } from "node:crypto";
import { OperatorError, StorageUnavailable } from "../../../errors/faults.ts";
import { MARKER, type MarkerPlace } from "../claim-storage.ts";
import type { S3Bucket } from "./bucket.ts";

export class BucketMarker implements MarkerPlace {
  readonly name: string;
  readonly kind = "bucket";
  readonly advice = "Give every server of the database the same --storage";
  readonly #bucket: S3Bucket;

  constructor(bucket: S3Bucket) {
    this.#bucket = bucket;
    this.name = `s3://${bucket.place.bucket}/${bucket.place.prefix}`.replace(/\/$/, "");
  }

  assertUsable(): Promise<void> {
    return this.#saying(async () => {
      for await (const _ of this.#bucket.list(MARKER)) break;
      for await (const _ of this.#bucket.uploads(MARKER)) break;
      const probe = `probe-${randomUUID()}`;
      try {
        await this.#bucket.putBytes(probe, new Uint8Array(1), { isNew: true });
        const replaced = await this.#bucket.putBytes(probe, new Uint8Array(1), { isNew: true });
        if (replaced) throw new OperatorError(`--storage ${this.name}: its server ignores If-None-Match on writes`);
      } finally {
        await this.#bucket.remove(probe);
      }
    });
  }

  read(): Promise<string | null> {
    return this.#saying(async () => {
      const bytes = await this.#bucket.get(MARKER);
      return bytes && new TextDecoder().decode(bytes);
    });
  }

  make(text: string): Promise<void> {
    return this.#saying(async () => {
      await this.#bucket.putBytes(MARKER, new TextEncoder().encode(text), { isNew: true });
    });
  }

  remove(): Promise<void> {
    return this.#saying(() => this.#bucket.remove(MARKER));
  }

  async #saying<R>(work: () => Promise<R>): Promise<R> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StorageUnavailable)) throw error;
      throw new OperatorError(`cannot use --storage ${this.name}: ${error.reason}`, { cause: error });
    }
  }
}
