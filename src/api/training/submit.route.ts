// Routes with large bodies: they create jobs and log groups. Bodies are read as streams, and a job's data goes straight
// to its file.

import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Static, TSchema } from "typebox";
import { ServiceError } from "../../errors/service-error.ts";
import type { JobRecord } from "../../store/job-table.ts";
import { GroupLog } from "../../training/data/group-metrics.ts";
import type { JobDraft, Submission as JobSubmission } from "../../training/jobs/jobs.ts";
import { assertServable } from "../../training/policies.ts";
import type { TrainingService } from "../../training/service.ts";
import { type Principal, principalOf } from "../http/auth.ts";
import type { Loc, Violations } from "../request/violations.ts";
import { rlConfigFrom, sftConfigFrom } from "./config.wire.ts";
import type { Streamed } from "./json-items.ts";
import { ownModel } from "./own-model.ts";
import { presentJob } from "./present.ts";
import { previewRl, previewSft } from "./preview.ts";
import { readSubmission } from "./submission.ts";
import { documented, JobBody, LogBody, NewJobBody, NewSftJobBody } from "./training.schema.ts";
import { MAX_METRICS } from "./trajectory.schema.ts";
import { exampleFrom, GROUP_PARTS, groupPartFrom } from "./trajectory.wire.ts";
import { invalid, noIssues, readTraining, throwIfAny } from "./validation.ts";

const MAX_KEY_LENGTH = 255;

export interface SubmitOptions {
  maxBytes: number;
}

/** `app` must pass bodies on unread. */
export function registerTrainingSubmissions(
  app: FastifyInstance,
  training: TrainingService,
  options: SubmitOptions,
): void {
  const groups = { schema: NewJobBody, streamed: GROUP_PARTS, itemFrom: groupPartFrom, ...options };
  const examples = { schema: NewSftJobBody, streamed: { training_data: null }, itemFrom: exampleFrom, ...options };

  app.post(
    "/v1/preview/training-jobs",
    documented("Create a training job from scored trajectories", { body: NewJobBody, response: JobBody }),
    (request, reply) =>
      receive(request, training, groups, async ({ body, draft, submit }) => {
        const loc = ["body", "experimental_config"];
        const config = rlConfigFrom(body.experimental_config ?? {}, loc);
        const target = await trainable(training, body.model_id, principalOf(request));
        const longest = target.base.maxSequenceLength;
        if (config.packedSequenceLength !== null && config.packedSequenceLength > longest) {
          const message = `Input should be at most ${longest}, the model's context`;
          throw invalid([...loc, "packed_sequence_length"], "less_than_equal", message);
        }
        if (body.dry_run) return streamedJson(reply, await previewRl(training, draft, target, config));
        return presentJob(await submit(target.modelId, { kind: "rl", config }), false);
      }),
  );

  app.post(
    "/v1/preview/sft-training-jobs",
    documented("Create a supervised training job from examples", { body: NewSftJobBody, response: JobBody }),
    (request, reply) =>
      receive(request, training, examples, async ({ body, draft, submit }) => {
        const config = sftConfigFrom(body.config ?? {});
        const target = await trainable(training, body.model_id, principalOf(request));
        if (body.dry_run) return streamedJson(reply, await previewSft(training, draft, target, config));
        return presentJob(await submit(target.modelId, { kind: "sft", config }), false);
      }),
  );

  app.post<{ Params: { id: string } }>(
    "/v1/preview/models/:id/log",
    documented("Keep metrics of evaluated groups with the newest step", { body: LogBody }),
    async (request) => {
      const { owner } = await ownModel(training, request.params.id, principalOf(request));
      const issues = noIssues();
      const log = new GroupLog();
      const { fields } = await readSubmission(request.raw, {
        streamed: GROUP_PARTS,
        maxBytes: options.maxBytes,
        onItem(value, path) {
          const part = groupPartFrom(value, ["body", ...path], issues);
          if (issues.any || part === undefined) return;
          if ("histories" in part) log.addTrajectory(part);
          else log.addGroup(part);
          if (log.names > MAX_METRICS) {
            const message = `Value error, use at most ${MAX_METRICS} different names in one request`;
            issues.add(["body", ...path, "metrics"], "value_error", message);
          }
        },
      });
      const { split } = readRest(LogBody, fields, issues);
      return { metrics: await training.models.log(request.params.id, owner, split, log) };
    },
  );
}

interface Expected<S extends TSchema> extends SubmitOptions {
  schema: S;
  streamed: Streamed;
  /** Returns undefined for an item with problems. */
  itemFrom(value: unknown, loc: Loc, issues: Violations): unknown;
}

interface Received<S extends TSchema> {
  body: Static<S>;
  draft: JobDraft;
  submit(modelId: string, spec: JobSubmission["spec"]): Promise<JobRecord>;
}

/** Reads the body. Streamed items go to a draft on disk, discarded unless `work` submits it. */
async function receive<S extends TSchema, Answer>(
  request: FastifyRequest,
  training: TrainingService,
  { schema, streamed, itemFrom, maxBytes }: Expected<S>,
  work: (received: Received<S>) => Promise<Answer>,
): Promise<Answer> {
  const idempotencyKey = idempotencyKeyOf(request);
  const issues = noIssues();
  const draft = await training.jobs.draft();
  let submitted = false;
  try {
    const { fields, hash } = await readSubmission(request.raw, {
      streamed,
      maxBytes,
      async onItem(value, path) {
        const item = itemFrom(value, ["body", ...path], issues);
        if (!issues.any) await draft.input.append(item);
      },
    });
    const body = readRest(schema, fields, issues);
    const submit: Received<S>["submit"] = async (modelId, spec) => {
      submitted = true;
      const owner = principalOf(request).workspace.id;
      return training.jobs.submit(draft, { owner, modelId, spec, idempotencyKey, requestHash: hash });
    };
    return await work({ body, draft, submit });
  } finally {
    if (!submitted) await training.jobs.discard(draft);
  }
}

/** Reads the fields around the streamed items. Throws if these or the items have problems. */
function readRest<S extends TSchema>(schema: S, fields: unknown, issues: Violations): Static<S> {
  const body = readTraining(schema, fields, issues, ["body"]);
  throwIfAny(issues);
  return body as Static<S>;
}

/** Sends the pieces one by one. */
function streamedJson(reply: FastifyReply, pieces: AsyncGenerator<string>): Readable {
  reply.type("application/json; charset=utf-8");
  return Readable.from(pieces);
}

/** The model to train. */
async function trainable(training: TrainingService, modelId: string, principal: Principal) {
  const model = await ownModel(training, modelId, principal);
  const base = training.bases.get(model.baseModel);
  if (!base) throw new ServiceError("unknown_base_model", `The base model ${model.baseModel} is not here any more.`);
  assertServable(model, base);
  return { modelId, owner: model.owner, base };
}

function idempotencyKeyOf({ headers }: FastifyRequest): string | null {
  const key = headers["idempotency-key"];
  if (key === undefined || key === "") return null;
  if (typeof key === "string" && key.length <= MAX_KEY_LENGTH) return key;
  const message = `Use one key of at most ${MAX_KEY_LENGTH} characters`;
  throw invalid(["header", "Idempotency-Key"], "string_too_long", message);
}
