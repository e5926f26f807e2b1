// Routes whose bodies may be large: creating jobs and logging groups. Bodies are read as streams; a job's data goes
// straight to its file.

import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ServiceError } from "../../errors/service-error.ts";
import type { JobRecord } from "../../store/job-table.ts";
import type { BaseModel } from "../../training/base-models.ts";
import type { RlConfig, SftConfig } from "../../training/config.ts";
import { GroupLog } from "../../training/data/group-metrics.ts";
import { prepareJob } from "../../training/data/prepare.ts";
import { prepareSft, type SftExample } from "../../training/data/prepare-sft.ts";
import { planRl } from "../../training/gradient/gradient-plan.ts";
import { readGroups, readInput } from "../../training/jobs/job-input.ts";
import type { JobDraft, Submission as JobSubmission } from "../../training/jobs/jobs.ts";
import { assertServable } from "../../training/policies.ts";
import type { TrainingService } from "../../training/service.ts";
import { principalOf } from "../http/auth.ts";
import { rlConfigFrom } from "./config.wire.ts";
import { Fields, MAX_NAMES } from "./fields.ts";
import { Issues, invalid, type Loc } from "./issues.ts";
import type { Streamed } from "./json-items.ts";
import { presentJob, previewJson, sftPreviewJson } from "./present.ts";
import { exampleFrom, sftConfigFrom } from "./sft.wire.ts";
import { readSubmission } from "./submission.ts";
import { documented, JobBody, LogBody, NewJobBody, NewSftJobBody } from "./training.schema.ts";
import { GROUP_PARTS, groupPartFrom } from "./trajectory.wire.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const MAX_KEY_LENGTH = 255;
const MAX_SPLIT_LENGTH = 128;

export interface SubmitOptions {
  maxBytes: number;
}

/** `app` must hand bodies over unread. */
export function registerTrainingSubmissions(
  app: FastifyInstance,
  training: TrainingService,
  options: SubmitOptions,
): void {
  app.post(
    "/v1/preview/training-jobs",
    documented("Create a training job from scored trajectories", { body: NewJobBody, response: JobBody }),
    (request, reply) =>
      receive(request, training, options, GROUP_PARTS, groupPartFrom, async (body) => {
        const { fields, issues } = body;
        requireArray(fields, "trajectory_groups");
        const rl = rlConfigFrom(fields.object("experimental_config"), fields.at("experimental_config"), issues);
        const dryRun = fields.flag("dry_run") ?? false;
        const { model, base } = trainable(fields, training, principalOf(request).id, issues);
        if (rl.packedSequenceLength !== null && rl.packedSequenceLength > base.maxSequenceLength) {
          const at = [...fields.at("experimental_config"), "packed_sequence_length"];
          issues.add(at, "less_than_equal", `Input should be at most ${base.maxSequenceLength}, the model's context`);
        }
        issues.throwIfAny();
        if (dryRun) {
          return streamedJson(reply, await preview(training, body.draft, model.id, base, rl, principalOf(request).id));
        }
        return presentJob(await body.submit(model.id, { kind: "rl", config: rl }), false);
      }),
  );

  app.post(
    "/v1/preview/sft-training-jobs",
    documented("Create a supervised training job from examples", { body: NewSftJobBody, response: JobBody }),
    (request, reply) =>
      receive(request, training, options, { training_data: null }, exampleFrom, async (body) => {
        const { fields, issues } = body;
        requireArray(fields, "training_data");
        if (fields.raw("training_data_url") !== undefined) {
          const instead = "send the examples inline as training_data";
          fields.problem("training_data_url", "value_error", `Value error, this server fetches no URLs; ${instead}`);
        }
        const sft = sftConfigFrom(fields.object("config"), fields.at("config"), issues);
        const dryRun = fields.flag("dry_run") ?? false;
        const { model, base } = trainable(fields, training, principalOf(request).id, issues);
        issues.throwIfAny();
        if (dryRun) {
          return streamedJson(
            reply,
            await previewSft(training, body.draft, model.id, base, sft, principalOf(request).id),
          );
        }
        return presentJob(await body.submit(model.id, { kind: "sft", config: sft }), false);
      }),
  );

  app.post<{ Params: { id: string } }>(
    "/v1/preview/models/:id/log",
    documented("Keep metrics of evaluated groups with the newest step", { body: LogBody }),
    async (request) => {
      const owner = principalOf(request).id;
      training.models.owned(request.params.id, owner);
      const issues = new Issues();
      const groups = new GroupLog();
      const body = await readSubmission(request.raw, {
        streamed: GROUP_PARTS,
        maxBytes: options.maxBytes,
        onItem(value, path) {
          const part = groupPartFrom(value, ["body", ...path], issues);
          if (issues.any) return;
          if ("histories" in part) groups.addTrajectory(part);
          else groups.addGroup(part);
          if (groups.names > MAX_NAMES) {
            const message = `Value error, use at most ${MAX_NAMES} different names in one request`;
            issues.add(["body", ...path, "metrics"], "value_error", message);
          }
        },
      });
      const fields = new Fields(body.fields, ["body"], issues);
      const split = fields.text("split");
      if (fields.raw("split") === undefined) fields.missing("split");
      if (split !== null && split.length > MAX_SPLIT_LENGTH) {
        fields.problem("split", "string_too_long", `String should have at most ${MAX_SPLIT_LENGTH} characters`);
      }
      requireArray(fields, "trajectory_groups");
      issues.throwIfAny();
      return { metrics: training.models.log(request.params.id, owner, split!, groups) };
    },
  );
}

interface Received {
  fields: Fields;
  issues: Issues;
  draft: JobDraft;
  submit(modelId: string, spec: JobSubmission["spec"]): Promise<JobRecord>;
}

/** Reads the body with what is streamed going to a draft on disk; what `work` does not submit is discarded afterwards. */
async function receive<Answer>(
  request: FastifyRequest,
  training: TrainingService,
  options: SubmitOptions,
  streamed: Streamed,
  parse: (value: unknown, loc: Loc, issues: Issues) => unknown,
  work: (body: Received) => Promise<Answer>,
): Promise<Answer> {
  const idempotencyKey = idempotencyKeyOf(request);
  const issues = new Issues();
  const draft = await training.jobs.draft();
  let submitted = false;
  try {
    const { fields: raw, hash } = await readSubmission(request.raw, {
      streamed,
      maxBytes: options.maxBytes,
      async onItem(value, path) {
        const item = parse(value, ["body", ...path], issues);
        if (!issues.any) await draft.input.append(item);
      },
    });
    const fields = new Fields(raw, ["body"], issues);
    const submit: Received["submit"] = async (modelId, spec) => {
      submitted = true;
      const owner = principalOf(request).id;
      return training.jobs.submit(draft, { owner, modelId, spec, idempotencyKey, requestHash: hash });
    };
    return await work({ fields, issues, draft, submit });
  } finally {
    if (!submitted) await training.jobs.discard(draft);
  }
}

async function preview(
  training: TrainingService,
  draft: JobDraft,
  modelId: string,
  base: BaseModel,
  config: RlConfig,
  owner: string,
) {
  await draft.input.finish();
  const { step } = training.models.step(modelId, owner, "latest");
  // what a job would refuse, a preview refuses too
  training.jobs.checkReference(modelId, config);
  const prepared = await prepareJob(readGroups(draft.path), {
    encoder: base.encoder,
    config,
    currentStep: step,
    preview: true,
    maxSequenceLength: base.maxSequenceLength,
    maxTrainedLength: base.maxTrainedLength,
  });
  planRl(prepared.sequences.length, config, 1);
  return previewJson(prepared, modelId, step);
}

async function previewSft(
  training: TrainingService,
  draft: JobDraft,
  modelId: string,
  base: BaseModel,
  config: SftConfig,
  owner: string,
) {
  await draft.input.finish();
  const { step } = training.models.step(modelId, owner, "latest");
  const examples = readInput<SftExample>(draft.path);
  const prepared = await prepareSft(examples, base.encoder, config, base);
  return sftPreviewJson(prepared, modelId, step);
}

/** What a handler returns to have them sent one by one. */
function streamedJson(reply: FastifyReply, pieces: AsyncGenerator<string>): Readable {
  reply.type("application/json; charset=utf-8");
  return Readable.from(pieces);
}

/** The model to train. Form problems are noted with the others; a model that is not the caller's is a 404. */
function trainable(fields: Fields, training: TrainingService, owner: string, issues: Issues) {
  const id = fields.id("model_id");
  if (fields.raw("model_id") === undefined) fields.missing("model_id");
  else if (id !== null && !UUID.test(id)) fields.problem("model_id", "uuid_parsing", "Input should be a valid UUID");
  issues.throwIfAny();
  const model = training.models.owned(id!, owner);
  const base = training.bases.get(model.baseModel);
  if (!base) throw new ServiceError("unknown_base_model", `The base model ${model.baseModel} is not here any more.`);
  assertServable(model, base);
  return { model, base };
}

function requireArray(fields: Fields, key: string): void {
  if (fields.raw(key) === undefined) fields.missing(key);
  else fields.array(key);
}

function idempotencyKeyOf({ headers }: FastifyRequest): string | null {
  const key = headers["idempotency-key"];
  if (key === undefined || key === "") return null;
  if (typeof key === "string" && key.length <= MAX_KEY_LENGTH) return key;
  throw invalid(
    ["header", "Idempotency-Key"],
    "string_too_long",
    `Use one key of at most ${MAX_KEY_LENGTH} characters`,
  );
}
