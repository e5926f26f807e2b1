// Routes for trainable models and their checkpoints.

import type { FastifyInstance } from "fastify";
import { type Static, Type } from "typebox";
import type { ModelRecord, StepRecord } from "../../store/tables/models.ts";
import type { Curves } from "../../training/curves.ts";
import type { TrainingService } from "../../training/service.ts";
import { isAdmin, type Principal, principalOf, readableBy } from "../http/auth.ts";
import { type ById, route } from "../route.ts";
import { nullable, orNull } from "../schema/body.ts";
import { afterId, page } from "../schema/list.ts";
import { ownModel, pageQuery, stepFrom } from "./params.ts";
import { presentModel, presentStep } from "./present.ts";
import {
  CheckpointBody,
  CheckpointList,
  DeletedCheckpoints,
  DeletedModel,
  listQuery,
  ModelFilter,
  NewModelBody,
  RollbackBody,
  StepOrder,
  StepsBody,
  TrainableModelBody,
  TrainableModelList,
} from "./training.schema.ts";
import { invalid, readQuery, readSmallBody } from "./validation.ts";

// The curves of a model as columns, for charts.

const CurveFilter = Type.Object({
  x: orNull(Type.Enum(["gradient_step", "step"]), {
    default: "gradient_step",
    description: "One row per gradient step, or one per step of the model with all its metrics.",
  }),
  keys: orNull(Type.String(), { description: "Metrics to return, separated by commas. Default: all." }),
  after: orNull(Type.Integer(), { description: "`next` of the reply before: only rows after it." }),
});

const CurvesBody = Type.Object(
  {
    object: Type.Literal("curves"),
    keys: Type.Array(Type.String(), { description: "Of the columns." }),
    rows: Type.Integer(),
    columns: Type.Record(Type.String(), Type.Array(nullable(Type.Number())), {
      description: "`gradient_step` counts from the model's first, or the job's; `step` is the step that it led to.",
    }),
    next: Type.Integer(),
    has_more: Type.Boolean({ description: "A reply has at most 5,000 rows." }),
    all_keys: Type.Array(Type.String()),
  },
  { title: "Curves" },
);

const JobCurveFilter = Type.Object({ keys: CurveFilter.properties.keys, after: CurveFilter.properties.after });

export function registerCurves(app: FastifyInstance, { models, jobs }: TrainingService): void {
  app.get<ById>(
    "/v1/preview/models/:id/curves",
    route("training", "Metrics of a model over its training, as columns", { query: CurveFilter, reply: CurvesBody }),
    async (request) => {
      const { x, ...rest } = readQuery(CurveFilter, request.query);
      const query = { x: x ?? ("gradient_step" as const), ...curveQuery(rest) };
      return present(await models.curves(request.params.id, readableBy(principalOf(request)), query));
    },
  );

  app.get<ById>(
    "/v1/preview/training-jobs/:id/curves",
    route("training", "Metrics of a job over its gradient steps, as columns", {
      query: JobCurveFilter,
      reply: CurvesBody,
    }),
    async (request) => {
      const query = curveQuery(readQuery(JobCurveFilter, request.query));
      return present(await jobs.curves(request.params.id, readableBy(principalOf(request)), query));
    },
  );
}

function curveQuery({ keys, after }: Static<typeof JobCurveFilter>) {
  return { keys: keys ? keys.split(",") : null, after: after ?? -1 };
}

function present({ rows, columns, next, hasMore, allKeys }: Curves) {
  return {
    ...{ object: "curves", keys: Object.keys(columns), rows, columns, next, has_more: hasMore },
    all_keys: allKeys,
  };
}

export function registerTrainingModels(app: FastifyInstance, training: TrainingService): void {
  const { models, policies } = training;
  const presented = async (found: readonly ModelRecord[], principal: Principal) => {
    const summaries = await models.summaries(found);
    return found.map((model, i) => presentModel(model, summaries[i]!, isAdmin(principal)));
  };
  const shown = (model: ModelRecord, step: StepRecord) => presentStep(step, policies.isLoaded(model, step));

  app.post(
    "/v1/preview/models",
    route("training", "Register a trainable model", { body: NewModelBody, reply: TrainableModelBody }),
    async (request) => {
      const body = readSmallBody(NewModelBody, request.body);
      const principal = principalOf(request);
      return (await presented([await createModel(training, body, principal)], principal))[0];
    },
  );

  app.get(
    "/v1/preview/models",
    route("training", "List trainable models", { query: listQuery(ModelFilter), reply: TrainableModelList }),
    async (request) => {
      const { after, limit } = pageQuery(request.query);
      const { base_model, ...named } = readQuery(ModelFilter, request.query);
      const filter = { ...named, baseModel: base_model ?? null };
      const principal = principalOf(request);
      const found = await models.list(readableBy(principal), filter, after, limit + 1);
      return page(await presented(found, principal), limit, (model) => model);
    },
  );

  app.get<ById>(
    "/v1/preview/models/:id",
    route("training", "One trainable model", { reply: TrainableModelBody }),
    async (request) => {
      const principal = principalOf(request);
      return (await presented([await models.owned(request.params.id, readableBy(principal))], principal))[0];
    },
  );

  app.delete<ById>(
    "/v1/preview/models/:id",
    route("training", "Delete a model with everything it has", { reply: DeletedModel }),
    async (request) => {
      const { id } = request.params;
      const { deletedCheckpoints } = await models.delete(id, readableBy(principalOf(request)));
      return { model_id: id, deleted_checkpoints: deletedCheckpoints, deleted_run: true };
    },
  );

  app.post<ById>(
    "/v1/preview/models/:id/rollback",
    route("training", "Make a new step with the weights of an old one", { body: RollbackBody, reply: CheckpointBody }),
    async (request) => {
      const { step } = readSmallBody(RollbackBody, request.body);
      const { id, owner } = await ownModel(training, request.params.id, principalOf(request));
      return shown(await models.owned(id, owner), await models.rollback(id, owner, step));
    },
  );

  app.get<ById>(
    "/v1/preview/models/:id/checkpoints",
    route("training", "List the steps of a model", { query: listQuery(StepOrder), reply: CheckpointList }),
    async (request) => {
      const { after, limit } = pageQuery(request.query);
      const { order } = readQuery(StepOrder, request.query);
      const model = await models.owned(request.params.id, readableBy(principalOf(request)));
      const steps = await models.steps(model.id, model.owner);
      if (order === "desc") steps.reverse();
      return page(afterId(steps, after).slice(0, limit + 1), limit, (step) => shown(model, step));
    },
  );

  app.get<{ Params: { id: string; step: string } }>(
    "/v1/preview/models/:id/checkpoints/:step",
    route("training", 'One step, by number or "latest"', { reply: CheckpointBody }),
    async (request) => {
      const { id, step } = request.params;
      const model = await models.owned(id, readableBy(principalOf(request)));
      return shown(model, await models.step(model.id, model.owner, stepFrom(step)));
    },
  );

  app.delete<ById>(
    "/v1/preview/models/:id/checkpoints",
    route("training", "Delete steps; the newest and those in use stay", { body: StepsBody, reply: DeletedCheckpoints }),
    async (request) => {
      const { steps } = readSmallBody(StepsBody, request.body);
      const result = await models.deleteSteps(request.params.id, readableBy(principalOf(request)), steps);
      return {
        deleted_count: result.deletedCount,
        not_found_steps: result.notFoundSteps,
        kept_steps: result.keptSteps,
      };
    },
  );
}

async function createModel(
  training: TrainingService,
  body: Static<typeof NewModelBody>,
  principal: Principal,
): Promise<ModelRecord> {
  const { project, name, base_model: baseModel = null } = body;
  const source = body.from && { modelId: body.from.model_id, step: body.from.step ?? null };
  const from = source ? { ...source, owner: readableBy(principal) } : null;
  if (baseModel === null && from === null) throw invalid(["body", "base_model"], "missing", "Field required");
  return training.models.create({
    ...{ project, name, baseModel, from },
    owner: principal.workspace.id,
    entity: body.entity ?? defaultEntity(principal),
    returnExisting: body.return_existing ?? false,
  });
}

/** That of the caller's workspace, reduced to characters allowed in a model's name. */
export function defaultEntity({ workspace: { entity, id } }: Principal): string {
  const cleaned = entity.replaceAll(/[^\w.-]+/g, "-").replaceAll(/^-+|-+$/g, "");
  return cleaned === "." || cleaned === ".." ? id : cleaned.slice(0, 128) || id;
}
