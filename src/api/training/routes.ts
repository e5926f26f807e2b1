// Groups all training routes for the server. Their errors have the usual envelope plus FastAPI's `detail`, which their
// clients read.

import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { errorEnvelope, ServiceError } from "../../errors/service-error.ts";
import type { TrainingService } from "../../training/service.ts";
import { leftWhileSending } from "../http/client-gone.ts";
import { errorHeaders, toWireError } from "../http/http-errors.ts";
import { parseJsonObject } from "../http/json-body.ts";
import { refuseNulInIds, refuseNulInPaths } from "../request/identifiers.ts";
import type { Violation } from "../request/violations.ts";
import type { RouteGroup } from "../server.ts";
import type { Service } from "../service.ts";
import { registerAdapterDownload } from "./adapter-download.ts";
import { registerCurves } from "./curves.route.ts";
import { registerTrainingJobs } from "./jobs.route.ts";
import { registerTrainingModels } from "./models.route.ts";
import { registerNews } from "./news.route.ts";
import { registerTrainingRecords } from "./records.route.ts";
import { registerTrainingPasses, registerTrainingRuns } from "./runs/runs.route.ts";
import { registerTrainingStatus } from "./status.route.ts";
import { registerTrainingSubmissions, type SubmitOptions } from "./submit.route.ts";
import { fromTraining } from "./training-errors.ts";
import { invalid, nulInId, ValidationError } from "./validation.ts";

/** Passed to `createServer` along with the inference routes. */
export function trainingRoutes(training: TrainingService, options: SubmitOptions): RouteGroup {
  return (app, service) => {
    service.accountOf = (workspace) => training.account(workspace);
    app.register(async (scope) => {
      useDetailedErrors(scope, service);
      checkNames(scope);
      readSmallBodies(scope);
      registerTrainingModels(scope, training);
      registerAdapterDownload(scope, training);
      registerTrainingJobs(scope, service, training);
      registerTrainingRecords(scope, training);
      registerCurves(scope, training);
      registerNews(scope, service, training);
      registerTrainingStatus(scope, service, training);
      registerTrainingRuns(scope, training);
    });
    app.register(async (scope) => {
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
    reply.headers(errorHeaders(error));
    return reply
      .code(error.status)
      .type("application/json; charset=utf-8")
      .send({ ...errorEnvelope(error), detail: detailOf(error) });
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
