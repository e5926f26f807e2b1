// Reads the body of a training request as it arrives: unpacked if it came packed, measured against the limit, hashed,
// and handed on element by element. What is rejected is still read to the end by the server, so that the client gets to
// see why.

import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { ServiceError } from "../../errors.ts";
import { invalid } from "./issues.ts";
import { JsonItems, JsonSyntaxError } from "./json-items.ts";

export interface SubmissionOptions {
  /** Top-level arrays whose elements are handed on one by one. */
  streamed: readonly string[];
  /** After unpacking. */
  maxBytes: number;
  /** Awaited before more is read. */
  onElement(key: string, index: number, value: unknown): Promise<void> | void;
}

export interface Submission {
  /** Top-level values that are not streamed; a streamed field that is no array is here too. */
  fields: Record<string, unknown>;
  /** Streamed arrays that were there, empty ones too. */
  arrays: ReadonlySet<string>;
  /** SHA-256 of the unpacked body, hexadecimal. */
  hash: string;
}

export async function readSubmission(request: IncomingMessage, options: SubmissionOptions): Promise<Submission> {
  const items = new JsonItems(options.streamed);
  const hash = createHash("sha256");
  const fields: Record<string, unknown> = Object.create(null);
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
        if (item.type === "element") await options.onElement(item.key, item.index, item.value);
        else fields[item.key] = item.value;
      }
    }
    items.finish();
  } catch (error) {
    request.unpipe();
    request.resume();
    if (error instanceof JsonSyntaxError) throw invalid(["body", error.offset], "json_invalid", error.message);
    if (isZlibError(error)) throw invalid(["body"], "value_error", "Value error, the body is not valid gzip");
    throw error;
  }
  return { fields, arrays: items.seen, hash: hash.digest("hex") };
}

function unpacked(request: IncomingMessage): Readable {
  const encoding = request.headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  if (encoding === "identity" || encoding === "") return request;
  if (encoding !== "gzip" && encoding !== "x-gzip") {
    throw new ServiceError("unsupported_media_type", `Content-Encoding ${encoding} is not known; send gzip or none.`);
  }
  const gunzip = createGunzip();
  // a client that leaves must end the unpacking too
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
