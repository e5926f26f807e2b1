// Reads the body of a new job. Its data goes straight to a file, and to the job's record as it was sent. Instead of data,
// a body may name a job whose data is used again.
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createGunzip } from "node:zlib";
import type { FastifyRequest } from "fastify";
import type { Static, TSchema } from "typebox";
import { ServiceError } from "../../errors/service-error.ts";
import { givingWay } from "../../pacing/turns.ts";
import type { JobRecord } from "../../store/tables/jobs.ts";
import type { JobDraft, Submission as JobSubmission } from "../../training/jobs/jobs.ts";
import type { SentWriter } from "../../training/records/sent-record.ts";
import type { TrainingService } from "../../training/service.ts";
import { type Principal, principalOf, readableBy } from "../http/auth.ts";
import { refuseNulInIds } from "../schema/identifiers.ts";
import type { Loc, Violations } from "../schema/scalars.ts";
import { type JsonItem, JsonItems, JsonSizeError, JsonSyntaxError, type Streamed } from "./json-stream.ts";
import { readRecord } from "./params.ts";
import { sentItems, withRewards } from "./record.wire.ts";
import type { NewReward } from "./training.schema.ts";
import { invalid, noIssues, nulInId, readTraining, throwIfAny } from "./validation.ts";

// Reads the body of a training request as it arrives: unzips it, enforces the size limit, hashes it and hands it on
// element by element. A rejected body is still read to its end, so that the client sees why.

export interface SubmissionOptions {
  /** Arrays whose elements are passed on one by one. */
  streamed: Streamed;
  /** Measured after unpacking. */
  maxBytes: number;
  /** Awaited before reading on. */
  onItem(item: JsonItem): Promise<void> | void;
}

export interface ReadBody {
  /** The outer object; its streamed arrays are empty. */
  fields: Record<string, unknown>;
  /** SHA-256 of the unpacked body, hexadecimal. */
  hash: string;
}

export async function readSubmission(request: IncomingMessage, options: SubmissionOptions): Promise<ReadBody> {
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

const MAX_KEY_LENGTH = 255;

export interface Expected<S extends TSchema, Again extends TSchema, Item> {
  kind: JobRecord["kind"];
  schema: S;
  /** For a body with `from_job`. */
  again: Again;
  /** The field with the data. */
  field: string;
  streamed: Streamed;
  maxBytes: number;
  /** Returns undefined for an item with problems. */
  itemFrom(value: unknown, loc: Loc, issues: Violations): Item | undefined;
  /** Adds an item to the job's record. */
  keep(record: SentWriter, item: JsonItem, read: Item): Promise<void>;
}

export interface Received<S extends TSchema, Again extends TSchema> {
  body: Static<S> | Static<Again>;
  /** The job whose data is used again. */
  source: JobRecord | null;
  draft: JobDraft;
  submit(modelId: string, spec: JobSubmission["spec"]): Promise<JobRecord>;
}

/** Reads the body. Streamed items go to a draft on disk, discarded unless `work` submits it. */
export async function receive<S extends TSchema, Again extends TSchema, Item, Answer>(
  request: FastifyRequest,
  training: TrainingService,
  expected: Expected<S, Again, Item>,
  work: (received: Received<S, Again>) => Promise<Answer>,
): Promise<Answer> {
  const { itemFrom, keep, streamed, maxBytes } = expected;
  const idempotencyKey = idempotencyKeyOf(request);
  const caller = principalOf(request);
  const issues = noIssues();
  const draft = await training.jobs.draft(caller.workspace.id, { recorded: true });
  const giveWay = givingWay();
  const onItem = async (item: JsonItem) => {
    await giveWay();
    const read = itemFrom(item.value, ["body", ...item.path], issues);
    if (issues.any || read === undefined) return;
    await giveWay();
    await draft.input.append(read);
    await giveWay();
    if (draft.record) await keep(draft.record, item, read);
  };
  let submitted = false;
  try {
    const { fields, hash } = await readSubmission(request.raw, { streamed, maxBytes, onItem });
    const isAgain = fields.from_job !== undefined && fields.from_job !== null;
    const body = readRest<S | Again>(isAgain ? expected.again : expected.schema, fields, issues);
    const source = isAgain ? await takeAgain(fields, caller, training, expected, onItem) : null;
    throwIfAny(issues);
    const submit: Received<S, Again>["submit"] = async (modelId, spec) => {
      submitted = true;
      const owner = caller.workspace.id;
      return training.jobs.submit(draft, { owner, modelId, spec, idempotencyKey, requestHash: hash });
    };
    return await work({ body, source, draft, submit });
  } finally {
    if (!submitted) await training.jobs.discard(draft);
  }
}

/** Feeds what was sent for another job to `onItem`. Returns that job. */
async function takeAgain(
  fields: Record<string, unknown>,
  caller: Principal,
  training: TrainingService,
  { kind, field }: Pick<Expected<TSchema, TSchema, unknown>, "kind" | "field">,
  onItem: (item: JsonItem) => Promise<void>,
): Promise<JobRecord> {
  const loc = ["body", "from_job"];
  if (fields[field] !== undefined) {
    throw invalid(loc, "value_error", `Value error, give from_job or ${field}, not both`);
  }
  const job = await training.jobs.owned(String(fields.from_job).toLowerCase(), readableBy(caller));
  if (job.kind !== kind) {
    const path = job.kind === "sft" ? "sft-training-jobs" : "training-jobs";
    throw invalid(loc, "value_error", `Value error, that job was sent to /v1/preview/${path}; send it there again`);
  }
  await readRecord(training, job, async (record) => {
    const rewards = (fields.rewards ?? []) as NewReward[]; // checked with the rest of the body
    for await (const item of withRewards(sentItems(record.texts(), field), rewards)) await onItem(item);
  });
  return job;
}

/** Reads the fields around the streamed items. Throws if these or the items have problems. */
export function readRest<S extends TSchema>(schema: S, fields: unknown, issues: Violations): Static<S> {
  const body = readTraining(schema, fields, issues, ["body"]);
  throwIfAny(issues);
  return body as Static<S>;
}

function idempotencyKeyOf({ headers }: FastifyRequest): string | null {
  const key = headers["idempotency-key"];
  if (key === undefined || key === "") return null;
  if (typeof key === "string" && key.length <= MAX_KEY_LENGTH) return key;
  const message = `Use one key of at most ${MAX_KEY_LENGTH} characters`;
  throw invalid(["header", "Idempotency-Key"], "string_too_long", message);
}
