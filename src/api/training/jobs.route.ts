// Routes that read, follow and cancel training jobs. submit.route.ts creates jobs.

import type { FastifyInstance, FastifyRequest } from "fastify";
import { isFinal } from "../../store/tables/jobs.ts";
import type { TrainingService } from "../../training/service.ts";
import { principalOf, readableBy } from "../http/auth.ts";
import { OpenStreams } from "../http/open-streams.ts";
import type { Service } from "../service.ts";
import { streamEvents } from "./event-stream.ts";
import { page, pageQuery } from "./paging.ts";
import { presentEvent, presentJob } from "./present.ts";
import { documented, EventList, JobBody, JobFilter, JobList, listQuery } from "./training.schema.ts";
import { readQuery } from "./validation.ts";

interface JobPath {
  Params: { id: string };
}

export function registerTrainingJobs(app: FastifyInstance, service: Service, training: TrainingService): void {
  const { jobs } = training;
  const streams = new OpenStreams(app, service);

  app.get(
    "/v1/preview/training-jobs",
    documented("List training jobs, newest first", { query: listQuery(JobFilter), response: JobList }),
    async (request) => {
      const { after, limit } = pageQuery(request.query);
      const { model_id, status = null } = readQuery(JobFilter, request.query);
      const modelId = model_id?.toLowerCase() ?? null;
      const found = await jobs.list(readableBy(principalOf(request)), modelId, status, after, limit + 1);
      return page(found, limit, (job) => presentJob(job, false));
    },
  );

  app.get<JobPath>(
    "/v1/preview/training-jobs/:id",
    documented("One training job with its report", { response: JobBody }),
    async (request) => presentJob(await jobs.owned(request.params.id, readableBy(principalOf(request))), true),
  );

  app.post<JobPath>(
    "/v1/preview/training-jobs/:id/cancel",
    documented("Cancel a training job", { response: JobBody }),
    async (request) => presentJob(await jobs.cancel(request.params.id, readableBy(principalOf(request))), false),
  );

  app.get<JobPath>(
    "/v1/preview/training-jobs/:id/events",
    documented("Events of a job: a page, or a stream with Accept: text/event-stream", {
      query: listQuery(),
      response: EventList,
    }),
    async (request, reply) => {
      const job = await jobs.owned(request.params.id, readableBy(principalOf(request)));
      const { after, limit } = pageQuery(request.query);
      if (wantsStream(request)) {
        const from = after ?? lastEventId(request);
        const [next] = await jobs.events(job.id, from, 1);
        // no more events will come; this status also stops an EventSource from reconnecting
        if (!next && isFinal(job.status)) return reply.code(204).send();
        const open = (onDrain: () => void, onClose: () => void) => {
          reply.raw.on("close", onClose);
          return streams.open(reply, onDrain);
        };
        streamEvents(open, { jobs, log: service.log }, job.id, from);
        return reply;
      }
      return page(await jobs.events(job.id, after, limit + 1), limit, presentEvent);
    },
  );
}

function wantsStream({ headers }: FastifyRequest): boolean {
  return headers.accept?.includes("text/event-stream") ?? false;
}

/** Sent by an EventSource when it reconnects. */
export function lastEventId({ headers }: FastifyRequest): string | null {
  const id = headers["last-event-id"];
  return typeof id === "string" && id !== "" ? id : null;
}
