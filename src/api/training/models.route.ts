// Routes of trainable models and their checkpoints.

import type { FastifyInstance } from "fastify";
import { ServiceError } from "../../errors/service-error.ts";
import { isJsonObject, type JsonObject } from "../../json/json-object.ts";
import type { ModelRecord, StepRecord } from "../../store/model-table.ts";
import type { TrainingService } from "../../training/service.ts";
import { type Principal, principalOf } from "../http/auth.ts";
import { Fields } from "./fields.ts";
import { Issues, invalid } from "./issues.ts";
import { page, pageQuery } from "./paging.ts";
import { presentModel, presentStep } from "./present.ts";
import {
  CheckpointBody,
  CheckpointList,
  documented,
  NewModelBody,
  RollbackBody,
  StepsBody,
  TrainableModelBody,
  TrainableModelList,
} from "./training.schema.ts";

/** The database ends a text at NUL and cannot hold half a surrogate pair. */
const NAME = /^[^\s/:@\\\p{Cc}\p{Cs}]{1,128}$/u;

interface ModelPath {
  Params: { id: string };
}

export function registerTrainingModels(app: FastifyInstance, training: TrainingService): void {
  const { models } = training;

  app.post(
    "/v1/preview/models",
    documented("Register a trainable model", { body: NewModelBody, response: TrainableModelBody }),
    async (request) => {
      return presentModel(createModel(training, objectBody(request.body), principalOf(request)));
    },
  );

  app.get(
    "/v1/preview/models",
    documented("List trainable models", { response: TrainableModelList }),
    async (request) => {
      const { after, limit } = pageQuery(request.query);
      const issues = new Issues();
      const fields = new Fields(request.query as JsonObject, ["query"], issues);
      const filter = {
        entity: fields.text("entity"),
        project: fields.text("project"),
        name: fields.text("name"),
        baseModel: fields.text("base_model"),
      };
      issues.throwIfAny();
      const found = models.list(principalOf(request).id, filter, after, limit + 1);
      return page(found, limit, presentModel);
    },
  );

  app.get<ModelPath>(
    "/v1/preview/models/:id",
    documented("One trainable model", { response: TrainableModelBody }),
    async (request) => presentModel(models.owned(request.params.id, principalOf(request).id)),
  );

  app.delete<ModelPath>(
    "/v1/preview/models/:id",
    documented("Delete a model with everything it has", {}),
    async (request) => {
      const { id } = request.params;
      const { deletedCheckpoints } = await models.delete(id, principalOf(request).id);
      return { model_id: id, deleted_checkpoints: deletedCheckpoints, deleted_run: true };
    },
  );

  app.post<ModelPath>(
    "/v1/preview/models/:id/rollback",
    documented("Make a new step with the weights of an old one", { body: RollbackBody, response: CheckpointBody }),
    async (request) => {
      const issues = new Issues();
      const fields = new Fields(objectBody(request.body), ["body"], issues);
      const step = fields.integer("step", { min: 0 });
      if (fields.raw("step") === undefined) fields.missing("step");
      issues.throwIfAny();
      return presentStep(await models.rollback(request.params.id, principalOf(request).id, step!));
    },
  );

  app.get<ModelPath>(
    "/v1/preview/models/:id/checkpoints",
    documented("List the steps of a model", { response: CheckpointList }),
    async (request) => {
      const { after, limit, order } = pageQuery(request.query);
      const steps = models.steps(request.params.id, principalOf(request).id);
      if (order === "desc") steps.reverse();
      return page(afterId(steps, after).slice(0, limit + 1), limit, presentStep);
    },
  );

  app.get<{ Params: { id: string; step: string } }>(
    "/v1/preview/models/:id/checkpoints/:step",
    documented('One step, by number or "latest"', { response: CheckpointBody }),
    async (request) => {
      const { id, step } = request.params;
      if (step !== "latest" && !/^\d{1,9}$/.test(step)) {
        throw new ServiceError("unknown_checkpoint", `${step} is not a step; use a number or "latest".`);
      }
      return presentStep(models.step(id, principalOf(request).id, step === "latest" ? step : Number(step)));
    },
  );

  app.delete<ModelPath>(
    "/v1/preview/models/:id/checkpoints",
    documented("Delete steps; the newest and those in use stay", { body: StepsBody }),
    async (request) => {
      const issues = new Issues();
      const fields = new Fields(objectBody(request.body), ["body"], issues);
      if (fields.raw("steps") === undefined) fields.missing("steps");
      const steps = fields.integers("steps") ?? [];
      issues.throwIfAny();
      const result = await models.deleteSteps(request.params.id, principalOf(request).id, steps);
      return {
        deleted_count: result.deletedCount,
        not_found_steps: result.notFoundSteps,
        kept_steps: result.keptSteps,
      };
    },
  );
}

function createModel(training: TrainingService, body: JsonObject, principal: Principal): ModelRecord {
  const issues = new Issues();
  const fields = new Fields(body, ["body"], issues);
  const name = named(fields, "name");
  const project = named(fields, "project");
  const entity = fields.raw("entity") === undefined ? defaultEntity(principal) : named(fields, "entity");
  const returnExisting = fields.flag("return_existing") ?? false;
  const from = sourceOf(fields, issues);
  const baseModel = fields.text("base_model");
  if (baseModel === null && from === null && fields.raw("base_model") === undefined) fields.missing("base_model");
  issues.throwIfAny();
  return training.models.create({ owner: principal.id, entity, project, name, baseModel, returnExisting, from });
}

function sourceOf(fields: Fields, issues: Issues): { modelId: string; step: number | null } | null {
  const object = fields.object("from");
  if (!object) return null;
  const source = new Fields(object, fields.at("from"), issues);
  const modelId = source.id("model_id");
  if (source.raw("model_id") === undefined) source.missing("model_id");
  return { modelId: modelId ?? "", step: source.integer("step", { min: 0 }) };
}

/** Names become parts of inference names: no separators in them. */
function named(fields: Fields, key: string): string {
  const value = fields.text(key);
  if (fields.raw(key) === undefined) fields.missing(key);
  else if (value !== null && !NAME.test(value)) {
    const without = "spaces, control characters, '/', '\\', ':' and '@'";
    fields.problem(key, "value_error", `Value error, use 1 to 128 characters without ${without}`);
  }
  return value ?? "";
}

/** The caller's name as far as it can be part of a model's name. */
function defaultEntity({ name, id }: Principal): string {
  const cleaned = name.replaceAll(/[^\w.-]+/g, "-").replaceAll(/^-+|-+$/g, "");
  return cleaned.slice(0, 128) || id;
}

/** Behind the item with that id; a cursor that is gone gives an empty page. */
function afterId(steps: readonly StepRecord[], after: string | null): readonly StepRecord[] {
  if (after === null) return steps;
  const at = steps.findIndex(({ id }) => id === after);
  return at < 0 ? [] : steps.slice(at + 1);
}

function objectBody(body: unknown): JsonObject {
  if (body === undefined || body === null) throw invalid(["body"], "missing", "Field required");
  if (!isJsonObject(body)) throw invalid(["body"], "dict_type", "Input should be a valid dictionary");
  return body;
}
