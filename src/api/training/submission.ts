// Reads the body of a training request as it arrives: unzips it, enforces the size limit, hashes it and hands it on
// element by element. A rejected body is still read to its end, so that the client sees why.

import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createGunzip } from "node:zlib";
import { ServiceError } from "../../errors/service-error.ts";
import { refuseNulInIds } from "../request/identifiers.ts";
import { JsonSizeError, JsonSyntaxError } from "./json-errors.ts";
import { type JsonItem, JsonItems, type Streamed } from "./json-items.ts";
import { invalid, nulInId } from "./validation.ts";

export interface SubmissionOptions {
  /** Arrays whose elements are passed on one by one. */
  streamed: Streamed;
  /** Measured after unpacking. */
  maxBytes: number;
  /** Awaited before reading on. */
  onItem(item: JsonItem): Promise<void> | void;
}

export interface Submission {
  /** The outer object; its streamed arrays are empty. */
  fields: Record<string, unknown>;
  /** SHA-256 of the unpacked body, hexadecimal. */
  hash: string;
}

export async function readSubmission(request: IncomingMessage, options: SubmissionOptions): Promise<Submission> {
  const items = new JsonItems(options.streamed);
  const hash = createHash("sha256");
  let fields: Record<string, unknown> = {};
  let bytes = 0;
  const source = unpacked(request);
  try {
    for await (const chunk of source.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > options.maxBytes) {
        throw new ServiceError("body_too_large", `The body is larger than ${options.maxBytes} bytes.`);
      }
      hash.update(chunk);
      for (const item of items.push(chunk)) {
        if (item.path.length > 0) await options.onItem(item);
        else fields = item.value as Record<string, unknown>;
      }
      await nextTurn(); // a fast sender's chunks arrive many at once; output streams must not wait for all of them
    }
    items.finish();
    refuseNulInIds(fields, null, nulInId);
  } catch (error) {
    request.unpipe();
    if (source !== request) source.destroy(); // its errors have no listener any more
    request.resume();
    if (error instanceof JsonSyntaxError) throw invalid(["body", error.offset], "json_invalid", error.message);
    if (error instanceof JsonSizeError) {
      throw new ServiceError("body_too_large", `${error.message}.`, { param: ["body", ...error.path].join(".") });
    }
    if (!request.complete && request.destroyed) {
      throw new ServiceError("bad_http", "The connection ended before the body did.", { cause: error });
    }
    if (isZlibError(error)) throw invalid(["body"], "value_error", "Value error, the body is not valid gzip");
    throw error;
  }
  return { fields, hash: hash.digest("hex") };
}

function unpacked(request: IncomingMessage): Readable {
  const encoding = request.headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  if (encoding === "identity" || encoding === "") return request;
  if (encoding !== "gzip" && encoding !== "x-gzip") {
    throw new ServiceError("unsupported_media_type", `Content-Encoding ${encoding} is not known; send gzip or none.`);
  }
  const gunzip = createGunzip();
  // stop unpacking if the client leaves
  request.once("error", (error) => gunzip.destroy(error));
  request.once("close", () => {
    if (!request.complete) gunzip.destroy(new Error("the client left before the body was complete"));
  });
  return request.pipe(gunzip);
}

function isZlibError(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" && (code.startsWith("Z_") || code === "ERR_STREAM_PREMATURE_CLOSE");
}
