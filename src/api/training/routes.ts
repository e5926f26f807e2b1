// All training routes as one group for the server, with the error form their clients read: the usual envelope plus
// FastAPI's `detail`.

import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { errorEnvelope } from "../../errors.ts";
import type { TrainingService } from "../../training/service.ts";
import { errorHeaders, toWireError } from "../http-errors.ts";
import type { RouteGroup } from "../server.ts";
import type { Service } from "../service.ts";
import { ValidationError } from "./issues.ts";
import { registerTrainingJobs } from "./jobs.route.ts";
import { registerTrainingModels } from "./models.route.ts";
import { registerTrainingStatus } from "./status.route.ts";
import { registerTrainingSubmissions, type SubmitOptions } from "./submit.route.ts";

/** What `createServer` takes beside the inference routes. */
export function trainingRoutes(training: TrainingService, options: SubmitOptions): RouteGroup {
  return (app, service) => {
    app.register(async (scope) => {
      useDetailedErrors(scope, service);
      registerTrainingModels(scope, training);
      registerTrainingJobs(scope, training);
      registerTrainingStatus(scope, training);
    });
    app.register(async (scope) => {
      useDetailedErrors(scope, service);
      // bodies are read by the routes, as they arrive
      scope.removeAllContentTypeParsers();
      scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
      registerTrainingSubmissions(scope, training, options);
    });
  };
}

function useDetailedErrors(scope: FastifyInstance, service: Service): void {
  scope.setErrorHandler((thrown: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
    const error = toWireError(thrown);
    if (error.status >= 500) {
      service.log.error("request failed", { id: request.id, url: request.routeOptions.url, error: thrown });
    }
    service.metrics.rejected(error.code);
    const detail = error instanceof ValidationError ? error.issues : error.message;
    reply.headers(errorHeaders(error));
    return reply
      .code(error.status)
      .type("application/json; charset=utf-8")
      .send({ ...errorEnvelope(error), detail });
  });
}
