// Groups all training routes for the server. Their errors have the usual envelope plus FastAPI's `detail`, which their
// clients read.

import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { ErrorCode } from "../../errors/error-table.ts";
import { ServiceError } from "../../errors/service-error.ts";
import type { TrainingService } from "../../training/service.ts";
import { TrainingError, type TrainingErrorCode } from "../../training/training-error.ts";
import { readableBy } from "../http/auth.ts";
import { parseJsonObject } from "../http/body.ts";
import { sendError, toWireError } from "../http/errors.ts";
import { inPart } from "../http/openapi.ts";
import { leftWhileSending } from "../http/streams.ts";
import { refuseNulInIds, refuseNulInPaths } from "../schema/identifiers.ts";
import type { Violation } from "../schema/scalars.ts";
import type { RouteGroup } from "../server.ts";
import type { Service } from "../service.ts";
import { registerAdapterDownload } from "./adapter-download.ts";
import { registerTrainingJobs } from "./jobs.route.ts";
import { registerCurves, registerTrainingModels } from "./models.route.ts";
import { registerNews } from "./news.route.ts";
import { registerNotes } from "./notes.route.ts";
import { registerTrainingRecords } from "./records.route.ts";
import { registerTrainingPasses, registerTrainingRuns } from "./runs/runs.route.ts";
import { registerTrainingStatus } from "./status.route.ts";
import { registerTrainingSubmissions, type SubmitOptions } from "./submit.route.ts";
import { TrainingErrorBody } from "./training.schema.ts";
import { invalid, nulInId, ValidationError } from "./validation.ts";

// Maps training errors to wire errors.

/** The code in the error table, and the request field that the error is about. */
const WIRE: Readonly<Record<TrainingErrorCode, { code: ErrorCode; param?: string }>> = {
  model_exists: { code: "model_exists" },
  name_taken: { code: "name_taken", param: "name" },
  unknown_base_model: { code: "unknown_base_model", param: "base_model" },
  fork_changes_base_model: { code: "unknown_base_model", param: "base_model" },
  unknown_model: { code: "unknown_training_model", param: "model_id" },
  unknown_step: { code: "unknown_checkpoint" },
  damaged_step: { code: "damaged_checkpoint", param: "step" },
  model_busy: { code: "model_busy" },
  job_does_not_stop: { code: "model_busy" },
  too_many_metrics: { code: "invalid_training_request", param: "trajectory_groups" },
  unknown_job: { code: "unknown_training_job" },
  record_expired: { code: "record_expired" },
  no_token_numbers: { code: "no_token_numbers" },
  unknown_trajectory: { code: "unknown_training_job" },
  unknown_event: { code: "unknown_training_job", param: "after" },
  idempotency_key_reused: { code: "idempotency_key_reused" },
  unknown_run: { code: "unknown_training_run" },
  unknown_operation: { code: "unknown_training_run" },
  unknown_checkpoint: { code: "unknown_checkpoint" },
  no_result: { code: "unknown_training_run" },
  run_differs: { code: "run_conflict", param: "spec" },
  run_closed: { code: "run_conflict" },
  rank_differs: { code: "run_conflict", param: "source" },
  request_id_reused: { code: "run_conflict", param: "request_id" },
  out_of_sequence: { code: "run_conflict", param: "sequence_id" },
  too_many_open_jobs: { code: "quota_exceeded" },
  too_many_bytes: { code: "quota_exceeded" },
  too_many_notes: { code: "quota_exceeded" },
  storage_full: { code: "storage_full" },
  no_kl_reference: { code: "invalid_training_request", param: "experimental_config" },
  learning_rate_overflow: { code: "invalid_training_request", param: "experimental_config" },
  base_model_changed: { code: "unknown_base_model", param: "base_model" },
  base_model_gone: { code: "model_not_found", param: "model" },
  rank_too_large: { code: "adapter_rank_too_large", param: "model_id" },
  no_adapter_slot: { code: "no_adapter_slot" },
  trainer_failed: { code: "trainer_failed" },
  no_runs: { code: "not_supported" },
};

/** The wire error for a training error. Returns other errors unchanged. */
export function fromTraining(thrown: unknown): unknown {
  return thrown instanceof TrainingError ? wireError(thrown) : thrown;
}

/** The same for a request to a policy, where the field is `model`. */
export function fromPolicy(thrown: unknown): unknown {
  return thrown instanceof TrainingError ? wireError(thrown, "model") : thrown;
}

function wireError(cause: TrainingError, field?: string): ServiceError {
  const { code, param } = WIRE[cause.code];
  const hint =
    code === "model_exists" ? cause.message.replace(/\.$/, " or send return_existing: true.") : cause.message;
  return new ServiceError(code, hint, { param: param === undefined ? null : (field ?? param), cause });
}

const PART = { tag: "training", errorBody: TrainingErrorBody, errors: [404, 422] };

/** Passed to `createServer` along with the inference routes. */
export function trainingRoutes(training: TrainingService, options: SubmitOptions): RouteGroup {
  return (app, service) => {
    service.stepName = (folder, caller) => training.policies.nameOf(folder, readableBy(caller));
    service.accountOf = (workspace) => training.account(workspace);
    app.register(async (scope) => {
      inPart(scope, PART);
      useDetailedErrors(scope, service);
      checkNames(scope);
      readSmallBodies(scope);
      registerTrainingModels(scope, training);
      registerAdapterDownload(scope, training);
      registerTrainingJobs(scope, service, training);
      registerTrainingRecords(scope, training);
      registerCurves(scope, training);
      registerNews(scope, service, training);
      registerNotes(scope, training);
      registerTrainingStatus(scope, service, training);
      registerTrainingRuns(scope, training);
    });
    app.register(async (scope) => {
      inPart(scope, PART);
      useDetailedErrors(scope, service);
      checkNames(scope);
      // the routes read bodies as they arrive
      scope.removeAllContentTypeParsers();
      scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
      registerTrainingSubmissions(scope, training, options);
      registerTrainingPasses(scope, training, options);
    });
  };
}

/** Ids in paths are UUIDs; some clients write them in upper case. */
function checkNames(scope: FastifyInstance): void {
  refuseNulInPaths(scope, nulInId);
  scope.addHook("preHandler", async (request) => {
    const params = request.params as { id?: string };
    if (params.id !== undefined) params.id = params.id.toLowerCase();
  });
}

/** Clients announce JSON even without a body, as on DELETE. An empty body is absent, not malformed. */
function readSmallBodies(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser("application/json", { parseAs: "buffer" }, async (_request: unknown, body: Buffer) => {
    if (body.length === 0) return undefined;
    try {
      const value = parseJsonObject(body);
      refuseNulInIds(value, body, nulInId);
      return value;
    } catch (error) {
      if (error instanceof ValidationError || !(error instanceof ServiceError)) throw error;
      throw invalid(["body"], "json_invalid", error.message);
    }
  });
}

function useDetailedErrors(scope: FastifyInstance, service: Service): void {
  scope.setErrorHandler((thrown: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
    const error = toWireError(fromTraining(thrown));
    const left = leftWhileSending(request.raw, thrown);
    if (error.status >= 500 && !left) {
      service.log.error("request failed", {
        id: reply.getHeader("x-request-id"),
        url: request.routeOptions.url,
        error: thrown,
      });
    }
    if (!left) service.metrics.rejected(error.code);
    return sendError(reply, error, detailOf(error));
  });
}

/** FastAPI's form: a list of problems for a 422, a sentence otherwise. */
function detailOf(error: ServiceError): readonly Violation[] | string {
  if (error instanceof ValidationError) return error.issues;
  if (error.status !== 422) return error.message;
  const loc =
    error.code === "idempotency_key_reused" ? ["header", "Idempotency-Key"] : ["body", error.param ?? "model_id"];
  return [{ loc, msg: error.message, type: "value_error" }];
}
