// Streams a job's events: first the past ones, then live ones, until the last. Each block carries the event's id, so a
// reader that lost its connection can resume.

import type { FastifyReply } from "fastify";
import type { Log } from "../../observe/log.ts";
import type { JobEvent } from "../../store/event-table.ts";
import type { Jobs } from "../../training/jobs/jobs.ts";
import { TrainingError } from "../../training/training-error.ts";
import { EventStream } from "../http/sse.ts";
import { presentEvent } from "./present.ts";

const PAGE = 500;
const HEARTBEAT_MS = 15_000;

export interface EventStreamParts {
  jobs: Pick<Jobs, "events" | "watch">;
  log: Log;
  /** In seconds. */
  stallTimeout: number;
}

export function streamEvents(reply: FastifyReply, parts: EventStreamParts, jobId: string, after: string | null): void {
  const { jobs, log, stallTimeout } = parts;
  let last = after;
  let ended = false;
  const stream = new EventStream(reply.raw, {
    headers: reply.getHeaders(),
    stallTimeout,
    onDrain: () => follow(),
  });
  /** If the events cannot be read, cuts the connection; the reader will reconnect. */
  const follow = () => {
    try {
      pump();
    } catch (error) {
      log.error("following a training job", { job: jobId, error });
      stream.cut();
    }
  };
  // events that the socket cannot take yet stay in the table to be read later
  const pump = () => {
    while (!ended && !stream.blocked) {
      const events = eventsAfter(last);
      if (events === null) return finish("");
      if (events.length === 0) return;
      const final = events.findIndex(isLast);
      const shown = final < 0 ? events : events.slice(0, final + 1);
      last = shown.at(-1)!.id;
      const text = shown.map(block).join("");
      if (final < 0) stream.send(text);
      else finish(text);
    }
  };
  /** null if the job was deleted with its model before the reader caught up. */
  const eventsAfter = (last: string | null): JobEvent[] | null => {
    try {
      return jobs.events(jobId, last, PAGE);
    } catch (error) {
      if (error instanceof TrainingError && error.code === "unknown_job") return null;
      throw error;
    }
  };
  const finish = (text: string) => {
    ended = true;
    clearInterval(heartbeat);
    stopWatching();
    stream.end(text);
  };
  const heartbeat = setInterval(() => {
    if (!stream.blocked) stream.send(": still training\n\n");
  }, HEARTBEAT_MS);
  const stopWatching = jobs.watch(jobId, follow);
  reply.raw.on("close", () => {
    ended = true;
    clearInterval(heartbeat);
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
