// Routes that read, follow and cancel training jobs. submit.route.ts creates jobs.

import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Log } from "../../observe/log.ts";
import type { JobEvent } from "../../store/tables/events.ts";
import { isFinal } from "../../store/tables/jobs.ts";
import type { Jobs } from "../../training/jobs/jobs.ts";
import type { TrainingService } from "../../training/service.ts";
import { TrainingError } from "../../training/training-error.ts";
import { principalOf, readableBy } from "../http/auth.ts";
import { type EventStream, OpenStreams } from "../http/streams.ts";
import { type ById, route } from "../route.ts";
import { page } from "../schema/list.ts";
import type { Service } from "../service.ts";
import { pageQuery } from "./params.ts";
import { presentEvent, presentJob } from "./present.ts";
import { EventBody, EventList, JobBody, JobFilter, JobList, listQuery } from "./training.schema.ts";
import { readQuery } from "./validation.ts";

// Streams a job's events: first the past ones, then live ones, until the last. Each block carries the event's id, so a
// reader that lost its connection can resume.

const PAGE = 500;
/** Between looks at the table. A job may have dozens of events a second, and nobody reads them one by one. */
const PAUSE_MS = 500;

export interface EventStreamParts {
  jobs: Pick<Jobs, "events" | "watch">;
  log: Log;
}

/** Opens the stream. */
export type OpenEvents = (onDrain: () => void, onClose: () => void) => EventStream;

export function streamEvents(
  open: OpenEvents,
  { jobs, log }: EventStreamParts,
  jobId: string,
  after: string | null,
): void {
  let last = after;
  let ended = false;
  let reading = false;
  /** Whether something happened since the table was read last. */
  let news = false;
  /** The last event, once it was told. A job that is deleted has none in the table. */
  let final: JobEvent | null = null;
  /** If the events cannot be read, cuts the connection; the reader will reconnect. */
  const follow = () => {
    news = true;
    if (reading) return;
    reading = true;
    pump().catch((error: unknown) => {
      if (ended) return;
      log.error("following a training job", { job: jobId, error });
      stream.cut();
    });
  };
  // events that the socket cannot take yet stay in the table to be read later
  const pump = async () => {
    try {
      while (news && !ended && !stream.blocked) {
        const isFull = await sendPage();
        if (!isFull && !ended) await sleep(PAUSE_MS, undefined, { ref: false });
      }
    } finally {
      reading = false;
    }
  };
  /** Whether there may be more. */
  const sendPage = async (): Promise<boolean> => {
    news = false;
    const events = await eventsAfter(last);
    if (ended || events?.length === 0) return false;
    if (events === null) {
      finish(final === null ? "" : block(final));
      return false;
    }
    const isFull = events.length === PAGE;
    news ||= isFull;
    const end = events.findIndex(isLast);
    const shown = end < 0 ? events : events.slice(0, end + 1);
    last = shown.at(-1)!.id;
    const text = shown.map(block).join("");
    if (end < 0) stream.send(text);
    else finish(text);
    return isFull;
  };
  /** null if the job was deleted with its model before the reader caught up. */
  const eventsAfter = async (last: string | null): Promise<JobEvent[] | null> => {
    try {
      return await jobs.events(jobId, last, PAGE);
    } catch (error) {
      if (error instanceof TrainingError && error.code === "unknown_job") return null;
      throw error;
    }
  };
  const finish = (text: string) => {
    ended = true;
    stopWatching();
    stream.end(text);
  };
  const stopWatching = jobs.watch(jobId, (event) => {
    if (event && isLast(event)) final = event;
    follow();
  });
  const stream = open(follow, () => {
    ended = true;
    stopWatching();
  });
  follow();
}

function isLast({ type }: JobEvent): boolean {
  return type === "training_ended" || type === "training_failed";
}

function block(event: JobEvent): string {
  return `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(presentEvent(event))}\n\n`;
}

export function registerTrainingJobs(app: FastifyInstance, service: Service, training: TrainingService): void {
  const { jobs } = training;
  const streams = new OpenStreams(app, service);

  app.get(
    "/v1/preview/training-jobs",
    route("training", "List training jobs, newest first", { query: listQuery(JobFilter), reply: JobList }),
    async (request) => {
      const { after, limit } = pageQuery(request.query);
      const { model_id, status = null } = readQuery(JobFilter, request.query);
      const modelId = model_id?.toLowerCase() ?? null;
      const found = await jobs.list(readableBy(principalOf(request)), modelId, status, after, limit + 1);
      return page(found, limit, (job) => presentJob(job, false));
    },
  );

  app.get<ById>(
    "/v1/preview/training-jobs/:id",
    route("training", "One training job with its report", { reply: JobBody }),
    async (request) => presentJob(await jobs.owned(request.params.id, readableBy(principalOf(request))), true),
  );

  app.post<ById>(
    "/v1/preview/training-jobs/:id/cancel",
    route("training", "Cancel a training job", { reply: JobBody }),
    async (request) => presentJob(await jobs.cancel(request.params.id, readableBy(principalOf(request))), false),
  );

  app.get<ById>(
    "/v1/preview/training-jobs/:id/events",
    route("training", "Events of a job: a page, or a stream with Accept: text/event-stream", {
      query: listQuery(),
      ...{ reply: EventList, chunk: EventBody },
    }),
    async (request, reply) => {
      const job = await jobs.owned(request.params.id, readableBy(principalOf(request)));
      const { after, limit } = pageQuery(request.query);
      if (wantsStream(request)) {
        const from = after ?? lastEventId(request);
        const [next] = await jobs.events(job.id, from, 1);
        // no more events will come; this status also stops an EventSource from reconnecting
        if (!next && isFinal(job.status)) return reply.code(204).send();
        streamEvents((...on) => streams.open(reply, ...on), { jobs, log: service.log }, job.id, from);
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
