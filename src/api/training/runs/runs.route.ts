// Routes for training runs, as OpenPipe ART's native client calls them: resolve a run, command operations one by one,
// poll each until it ends, and fetch its result. See docs/reference/training-runs.md.

import { createHash } from "node:crypto";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Static, TSchema } from "typebox";
import type { Command, PassCommand } from "../../../training/runs/operation.ts";
import type { TrainingService } from "../../../training/service.ts";
import { principalOf } from "../../http/auth.ts";
import { type ById, route } from "../../route.ts";
import { defaultEntity } from "../models.route.ts";
import { readSubmission } from "../receive.ts";
import type { SubmitOptions } from "../submit.route.ts";
import { noIssues, readSmallBody, readTraining, throwIfAny } from "../validation.ts";
import {
  LoadStateBody,
  OperationBody,
  OptimStepBody,
  PassBody,
  PublishBody,
  ReleaseBody,
  ReleasedBody,
  ResolveBody,
  ResultBody,
  RunBody,
  SaveStateBody,
} from "./run.schema.ts";
import {
  loadStateFrom,
  optimStepFrom,
  passFrom,
  presentOperation,
  presentResult,
  presentRun,
  publicationFrom,
  runFrom,
} from "./run.wire.ts";
import { TokenMatrixReader } from "./token-matrix.ts";

interface OperationPath {
  Params: { id: string; operation: string };
}

/** A path parameter that ends before a colon, which begins the name of an action. */
const RUN = "/v1/training/runs/:id(^[^/:]+)";
const OPERATION = "/v1/training/runs/:id/operations/:operation(^[^/:]+)";

export function registerTrainingRuns(app: FastifyInstance, training: TrainingService): void {
  const { runs } = training;

  app.post(
    "/v1/training/runs::resolve",
    route("training", "Find a training run by name, or make one", { body: ResolveBody, reply: RunBody }),
    async (request) => {
      const principal = principalOf(request);
      const body = readSmallBody(ResolveBody, request.body);
      return presentRun(await runs.resolve(runFrom(body, principal.workspace.id, defaultEntity(principal))));
    },
  );

  app.get<ById>(RUN, route("training", "One training run", { reply: RunBody }), async (request) =>
    presentRun(await runs.view(request.params.id, principalOf(request).workspace.id)),
  );

  app.post<ById>(
    `${RUN}::close`,
    route("training", "Refuse further operations of a run", { reply: RunBody }),
    async (request) => presentRun(await runs.close(request.params.id, principalOf(request).workspace.id)),
  );

  const command = <S extends TSchema>(name: string, summary: string, schema: S, from: (body: Static<S>) => Command) =>
    app.post<ById>(
      `/v1/training/runs/:id/${name}`,
      route("training", summary, { body: schema, reply: OperationBody }),
      async (request) => {
        const run = await runs.owned(request.params.id, principalOf(request).workspace.id);
        const body = readSmallBody(schema, request.body) as Static<S> & Numbered;
        const requestHash = createHash("sha256")
          .update(JSON.stringify([name, body]))
          .digest("hex");
        return presentOperation(
          await runs.submit(run, { ...numbered(body), command: from(body), requestHash, draft: null }),
        );
      },
    );
  command("optim_step", "Take an optimizer step with the gradients so far", OptimStepBody, optimStepFrom);
  command("save_weights_for_sampler", "Serve the run's weights under a name", PublishBody, publicationFrom);
  command("save_state", "Name the run's newest checkpoint", SaveStateBody, () => ({ kind: "save_state" }));
  command("load_state", "Continue a run with the weights of a checkpoint", LoadStateBody, loadStateFrom);

  app.get<OperationPath>(
    OPERATION,
    route("training", "One operation of a run", { reply: OperationBody }),
    async (request) => presentOperation(await operationOf(request)),
  );

  app.post<OperationPath>(
    `${OPERATION}::cancel`,
    route("training", "Cancel an operation, or drop the gradients of a finished one", { reply: OperationBody }),
    async (request) => {
      const { id, operation } = request.params;
      return presentOperation(await runs.cancel(id, principalOf(request).workspace.id, operation));
    },
  );

  app.get<OperationPath>(
    "/v1/training/runs/:id/operations/:operation/result",
    route("training", "The result of an operation that succeeded", { reply: ResultBody }),
    async (request) => {
      const job = await operationOf(request);
      return presentResult(job, runs.result(job));
    },
  );

  app.post<OperationPath>(
    "/v1/training/runs/:id/operations/:operation/result::release",
    route("training", "Delete the result of an operation", { body: ReleaseBody, reply: ReleasedBody }),
    async (request) => {
      const { id, operation } = request.params;
      const { request_id } = readSmallBody(ReleaseBody, request.body);
      await runs.release(id, principalOf(request).workspace.id, operation);
      return { operation_id: operation, request_id, released: true };
    },
  );

  function operationOf(request: FastifyRequest<OperationPath>) {
    const { id, operation } = request.params;
    return runs.operation(id, principalOf(request).workspace.id, operation.toLowerCase());
  }
}

/** `app` must pass bodies on unread: matrices go to the operation's file one by one. */
export function registerTrainingPasses(app: FastifyInstance, training: TrainingService, options: SubmitOptions): void {
  const { runs, jobs } = training;
  const pass = (kind: PassCommand["kind"], summary: string) =>
    app.post<ById>(
      `/v1/training/runs/:id/${kind}`,
      route("training", summary, { body: PassBody, reply: OperationBody }),
      async (request) => {
        const run = await runs.owned(request.params.id, principalOf(request).workspace.id);
        const base = await runs.baseOf(run);
        const reader = new TokenMatrixReader(base, await base.limits());
        const issues = noIssues();
        const draft = await jobs.draft(run.owner);
        let submitted = false;
        try {
          const { fields, hash } = await readSubmission(request.raw, {
            streamed: { batch: { matrices: null } },
            maxBytes: options.maxBytes,
            async onItem({ value, path }) {
              const matrix = reader.read(value, ["body", ...path], issues);
              if (matrix && !issues.any) await draft.input.append(matrix);
            },
          });
          throwIfAny(issues);
          const body = readTraining(PassBody, fields, issues, ["body"]);
          const command = body && passFrom(kind, body, reader.matrices, issues);
          if (command) reader.checkLoss(command.loss, issues);
          throwIfAny(issues);
          submitted = true;
          const requestHash = `${kind} ${hash}`;
          return presentOperation(
            await runs.submit(run, { ...numbered(body!), command: command!, requestHash, draft }),
          );
        } finally {
          if (!submitted) await jobs.discard(draft);
        }
      },
    );
  pass("forward", "Compute the loss and log-probabilities of a batch");
  pass("forward_backward", "Compute a batch's loss and keep its gradients for the next optimizer step");
}

type Numbered = Pick<Static<typeof PassBody>, "request_id" | "sequence_id">;

function numbered({ request_id, sequence_id }: Numbered) {
  return { requestId: request_id, sequenceId: sequence_id };
}
