// Reads the body of a new job. Its data goes straight to a file, and to the job's record as it was sent. Instead of data,
// a body may name a job whose data is used again.

import type { FastifyRequest } from "fastify";
import type { Static, TSchema } from "typebox";
import { givingWay } from "../../pacing/turns.ts";
import type { JobRecord } from "../../store/tables/jobs.ts";
import type { JobDraft, Submission as JobSubmission } from "../../training/jobs/jobs.ts";
import type { SentWriter } from "../../training/records/sent-record.ts";
import type { TrainingService } from "../../training/service.ts";
import { type Principal, principalOf, readableBy } from "../http/auth.ts";
import type { Loc, Violations } from "../request/violations.ts";
import type { JsonItem, Streamed } from "./json-items.ts";
import { sentItems, withRewards } from "./record.wire.ts";
import { readSubmission } from "./submission.ts";
import type { NewReward } from "./training.schema.ts";
import { invalid, noIssues, readTraining, throwIfAny } from "./validation.ts";

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
  const record = await training.jobs.openRecord(job);
  try {
    const sent = sentItems(record.texts(), field);
    const rewards = (fields.rewards ?? []) as NewReward[]; // checked with the rest of the body
    for await (const item of withRewards(sent, rewards)) {
      await onItem(item);
    }
  } finally {
    await record.close();
  }
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
