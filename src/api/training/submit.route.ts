// Routes with large bodies: they create jobs and log groups. Bodies are read as streams, and a job's data goes straight
// to its file.

import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply } from "fastify";
import { Type } from "typebox";
import { ServiceError } from "../../errors/service-error.ts";
import type { RlConfig, SftConfig } from "../../training/config.ts";
import { GroupLog } from "../../training/data/group-metrics.ts";
import { prepareJob } from "../../training/data/prepare.ts";
import { prepareSft, type SftExample } from "../../training/data/prepare-sft.ts";
import type { GroupPart } from "../../training/data/trajectory.ts";
import { planRl } from "../../training/gradient/gradient-plan.ts";
import { readGroups, readInput } from "../../training/jobs/job-input.ts";
import type { JobDraft } from "../../training/jobs/jobs.ts";
import { assertServable } from "../../training/policies.ts";
import type { TrainingService } from "../../training/service.ts";
import { type Principal, principalOf } from "../http/auth.ts";
import { type ById, route } from "../route.ts";
import { rlConfigFrom, sftConfigFrom } from "./job-options.ts";
import { ownModel } from "./params.ts";
import { presentJob, previewJson, sftPreviewJson } from "./present.ts";
import { type Expected, readRest, readSubmission, receive } from "./receive.ts";
import { keepExample, keepGroupPart } from "./record.wire.ts";
import { JobAgainBody, JobBody, LogBody, NewJobBody, NewSftJobBody, SftJobAgainBody } from "./training.schema.ts";
import { MAX_METRICS } from "./trajectory.schema.ts";
import { exampleFrom, GROUP_PARTS, groupPartFrom } from "./trajectory.wire.ts";
import { invalid, noIssues } from "./validation.ts";

// Shows what a job would train, without training it (`dry_run`): tokens, masks, advantages and verdicts, in pieces of
// JSON. A preview refuses what a job would refuse.

type Target = Awaited<ReturnType<typeof trainable>>;

async function previewRl(
  training: TrainingService,
  draft: JobDraft,
  { modelId, owner, base }: Target,
  config: RlConfig,
): Promise<AsyncGenerator<string>> {
  await draft.input.finish();
  const { step } = await training.models.step(modelId, owner, "latest");
  await training.jobs.checkReference(modelId, config);
  const prepared = await prepareJob(readGroups(draft.path), {
    encoder: base.encoder,
    config,
    currentStep: step,
    preview: true,
    ...(await base.limits()),
  });
  planRl(prepared.sequences, config, 1);
  return previewJson(prepared, modelId, step);
}

async function previewSft(
  training: TrainingService,
  draft: JobDraft,
  { modelId, owner, base }: Target,
  config: SftConfig,
): Promise<AsyncGenerator<string>> {
  await draft.input.finish();
  const { step } = await training.models.step(modelId, owner, "latest");
  const prepared = await prepareSft(readInput<SftExample>(draft.path), base.encoder, config, await base.limits());
  return sftPreviewJson(prepared, modelId, step);
}

export interface SubmitOptions {
  maxBytes: number;
}

/** `app` must pass bodies on unread. */
export function registerTrainingSubmissions(
  app: FastifyInstance,
  training: TrainingService,
  options: SubmitOptions,
): void {
  const groups: Expected<typeof NewJobBody, typeof JobAgainBody, GroupPart> = {
    ...{ kind: "rl", schema: NewJobBody, again: JobAgainBody, ...options },
    ...{ field: "trajectory_groups", streamed: GROUP_PARTS, itemFrom: groupPartFrom, keep: keepGroupPart },
  };
  const examples: Expected<typeof NewSftJobBody, typeof SftJobAgainBody, SftExample> = {
    ...{ kind: "sft", schema: NewSftJobBody, again: SftJobAgainBody, ...options },
    ...{ field: "training_data", streamed: { training_data: null }, itemFrom: exampleFrom, keep: keepExample },
  };

  app.post(
    "/v1/preview/training-jobs",
    route("training", "Create a training job from scored trajectories, or from those of another job", {
      body: Type.Union([NewJobBody, JobAgainBody]),
      reply: JobBody,
    }),
    (request, reply) =>
      receive(request, training, groups, async ({ body, source, draft, submit }) => {
        const loc = ["body", source ? "config" : "experimental_config"];
        const given = "from_job" in body ? body.config : body.experimental_config;
        const config = source && !given ? (JSON.parse(source.config) as RlConfig) : rlConfigFrom(given ?? {}, loc);
        const target = await trainable(training, body.model_id ?? source!.modelId, principalOf(request));
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
    route("training", "Create a supervised training job from examples, or from those of another job", {
      body: Type.Union([NewSftJobBody, SftJobAgainBody]),
      reply: JobBody,
    }),
    (request, reply) =>
      receive(request, training, examples, async ({ body, source, draft, submit }) => {
        const config =
          source && !body.config ? (JSON.parse(source.config) as SftConfig) : sftConfigFrom(body.config ?? {});
        const target = await trainable(training, body.model_id ?? source!.modelId, principalOf(request));
        if (body.dry_run) return streamedJson(reply, await previewSft(training, draft, target, config));
        return presentJob(await submit(target.modelId, { kind: "sft", config }), false);
      }),
  );

  app.post<ById>(
    "/v1/preview/models/:id/log",
    route("training", "Keep metrics of evaluated groups with the newest step", {
      body: LogBody,
      reply: Type.Object({ metrics: Type.Record(Type.String(), Type.Number()) }),
    }),
    async (request) => {
      const { owner } = await ownModel(training, request.params.id, principalOf(request));
      const issues = noIssues();
      const log = new GroupLog();
      const { fields } = await readSubmission(request.raw, {
        streamed: GROUP_PARTS,
        maxBytes: options.maxBytes,
        onItem({ value, path }) {
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
