// Objects in an S3 bucket: the few operations that storage needs. An object appears whole or not at all. Small files go up
// in one request, larger ones in parts; parts of an upload that fails are given up at once. The SDK signs, and repeats
// requests that failed; a body that breaks off is repeated here. Every error says what is wrong (bucket-errors.ts).

import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { open } from "node:fs/promises";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { S3 } from "@aws-sdk/client-s3";
import { explained, isMissing, isTaken, type Place } from "./bucket-errors.ts";

export interface LocalFile {
  path: string;
  bytes: number;
  /** In hex. Kept with the object. */
  sha256: string;
}

export interface Received {
  bytes: number;
  /** Of the bytes that came, in hex. */
  sha256: string;
  /** Of the file that was put, if it had one. */
  expected: string | undefined;
}

export interface Listed {
  key: string;
  bytes: number;
  /** When it was written, in milliseconds since 1970. */
  modified: number;
}

export interface Upload {
  key: string;
  uploadId: string;
  started: number;
}

export interface WriteOptions {
  /** Writes only if there is no such object. One that is there counts as written. */
  isNew: boolean;
  signal?: AbortSignal | undefined;
}

/** S3 allows 10,000 parts of 5 MiB to 5 GiB. */
const PART_BYTES = 16 * 2 ** 20;
const MOST_PARTS = 10_000;
const PARTS_AT_ONCE = 3;
const DOWNLOAD_TRIES = 4;

/** Not called Bucket: the compiler would rename that key of its requests too. */
export class S3Bucket {
  readonly place: Place;
  readonly #s3: S3;

  constructor(s3: S3, place: Place) {
    this.#s3 = s3;
    this.place = place;
  }

  async put(key: string, file: LocalFile, { isNew, signal }: WriteOptions): Promise<void> {
    if (file.bytes > PART_BYTES) return this.#putInParts(key, file, { isNew, signal });
    const handle = await open(file.path);
    try {
      await this.#putBytes(key, await handle.readFile(), { sha256: file.sha256 }, { isNew, signal });
    } finally {
      await handle.close();
    }
  }

  /** Returns false if the object was there already. */
  putBytes(key: string, bytes: Uint8Array, options: WriteOptions): Promise<boolean> {
    return this.#putBytes(key, bytes, {}, options);
  }

  /** null = there is no such object. For small ones. */
  async get(key: string, signal?: AbortSignal): Promise<Uint8Array | null> {
    return this.#ask(async () => {
      try {
        const { Body } = await this.#s3.getObject(this.#at(key), aborting(signal));
        return await Body!.transformToByteArray();
      } catch (error) {
        if (isMissing(error)) return null;
        throw error;
      }
    });
  }

  /** Writes an object to a new file. null = there is no such object. */
  async download(key: string, path: string, signal?: AbortSignal): Promise<Received | null> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#ask(() => this.#download(key, path, signal));
      } catch (error) {
        signal?.throwIfAborted();
        if (!(error as { passing?: boolean }).passing || tries === DOWNLOAD_TRIES) throw error;
      }
    }
  }

  /** It need not exist. */
  async remove(key: string): Promise<void> {
    await this.#ask(() => this.#s3.deleteObject(this.#at(key)));
  }

  /** The objects whose keys begin so, in the order of their keys. */
  async *list(prefix: string): AsyncGenerator<Listed> {
    let page: string | undefined;
    do {
      const { Contents, NextContinuationToken } = await this.#ask(() =>
        this.#s3.listObjectsV2({
          Bucket: this.place.bucket,
          Prefix: this.place.prefix + prefix,
          ...(page === undefined ? {} : { ContinuationToken: page }),
        }),
      );
      for (const { Key, Size, LastModified } of Contents ?? []) {
        yield { key: Key!.slice(this.place.prefix.length), bytes: Size!, modified: LastModified!.getTime() };
      }
      page = NextContinuationToken;
    } while (page !== undefined);
  }

  /** Uploads that were begun and neither completed nor given up. */
  async *uploads(prefix: string): AsyncGenerator<Upload> {
    let after: { KeyMarker?: string; UploadIdMarker?: string } | null = {};
    while (after !== null) {
      const from: { KeyMarker?: string; UploadIdMarker?: string } = after;
      const page = await this.#ask(() =>
        this.#s3.listMultipartUploads({ Bucket: this.place.bucket, Prefix: this.place.prefix + prefix, ...from }),
      );
      for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
        const key = Key!.slice(this.place.prefix.length);
        yield { key, uploadId: UploadId!, started: Initiated!.getTime() };
      }
      after = page.IsTruncated ? { KeyMarker: page.NextKeyMarker!, UploadIdMarker: page.NextUploadIdMarker! } : null;
    }
  }

  async abortUpload(key: string, uploadId: string): Promise<void> {
    await this.#ask(async () => {
      try {
        await this.#s3.abortMultipartUpload({ ...this.#at(key), UploadId: uploadId });
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
    });
  }

  #putBytes(key: string, bytes: Uint8Array, metadata: Record<string, string>, { isNew, signal }: WriteOptions) {
    return this.#ask(async () => {
      try {
        const body = { Body: bytes, ContentLength: bytes.length, Metadata: metadata };
        await this.#s3.putObject({ ...this.#at(key), ...body, ...onlyNew(isNew) }, aborting(signal));
        return true;
      } catch (error) {
        if (isNew && isTaken(error)) return false;
        throw error;
      }
    });
  }

  async #putInParts(key: string, file: LocalFile, { isNew, signal }: WriteOptions): Promise<void> {
    // an earlier try may have got through without an answer
    if (isNew && (await this.#has(key, file.sha256))) return;
    await this.#ask(async () => {
      const { UploadId } = await this.#s3.createMultipartUpload(
        { ...this.#at(key), Metadata: { sha256: file.sha256 } },
        aborting(signal),
      );
      const upload = { ...this.#at(key), UploadId: UploadId! };
      try {
        const Parts = await this.#putParts(upload, file, signal);
        const complete = { ...upload, MultipartUpload: { Parts }, ...onlyNew(isNew) };
        await this.#s3.completeMultipartUpload(complete, aborting(signal));
      } catch (error) {
        // without the answer to the completion, its repetition finds no upload any more
        const there = (isTaken(error) || isMissing(error)) && (await this.#has(key, file.sha256));
        await this.abortUpload(key, UploadId!).catch(() => {}); // cleared away later
        if (!there) throw error;
      }
    });
  }

  async #putParts(upload: { Bucket: string; Key: string; UploadId: string }, file: LocalFile, signal?: AbortSignal) {
    const size = Math.max(PART_BYTES, Math.ceil(file.bytes / MOST_PARTS));
    const count = Math.ceil(file.bytes / size);
    const parts: { PartNumber: number; ETag: string }[] = [];
    const handle = await open(file.path);
    let next = 0;
    const work = async () => {
      while (next < count) {
        const i = next++;
        const body = Buffer.alloc(Math.min(size, file.bytes - i * size));
        await handle.read(body, 0, body.length, i * size);
        const part = { ...upload, PartNumber: i + 1, Body: body, ContentLength: body.length };
        const { ETag } = await this.#s3.uploadPart(part, aborting(signal));
        parts[i] = { PartNumber: i + 1, ETag: ETag! };
      }
    };
    try {
      // all of them end before the file is closed
      const ended = await Promise.allSettled(Array.from({ length: PARTS_AT_ONCE }, work));
      for (const end of ended) if (end.status === "rejected") throw end.reason;
      return parts;
    } finally {
      await handle.close();
    }
  }

  /** Whether the object is there, with this content. */
  async #has(key: string, sha256: string): Promise<boolean> {
    return this.#ask(async () => {
      try {
        return (await this.#s3.headObject(this.#at(key))).Metadata?.sha256 === sha256;
      } catch (error) {
        if (isMissing(error)) return false;
        throw error;
      }
    });
  }

  async #download(key: string, path: string, signal?: AbortSignal): Promise<Received | null> {
    const hash = createHash("sha256");
    let bytes = 0;
    try {
      const { Body, Metadata } = await this.#s3.getObject(this.#at(key), aborting(signal));
      const hashed = async function* (parts: AsyncIterable<Buffer>) {
        for await (const part of parts) {
          hash.update(part);
          bytes += part.length;
          yield part;
        }
      };
      await pipeline(Body as Readable, hashed, createWriteStream(path, { mode: 0o600 }));
      return { bytes, sha256: hash.digest("hex"), expected: Metadata?.sha256 };
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  #at(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.place.bucket, Key: this.place.prefix + key };
  }

  async #ask<R>(work: () => Promise<R>): Promise<R> {
    try {
      return await work();
    } catch (error) {
      throw explained(error, this.place);
    }
  }
}

function onlyNew(isNew: boolean): { IfNoneMatch?: string } {
  return isNew ? { IfNoneMatch: "*" } : {};
}

function aborting(signal: AbortSignal | undefined): { abortSignal?: AbortSignal } {
  return signal ? { abortSignal: signal } : {};
}
