// Streams a job's events: first the past ones, then live ones, until the last. Each block carries the event's id, so a
// reader that lost its connection can resume.

import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../../observe/log.ts";
import type { JobEvent } from "../../store/tables/events.ts";
import type { Jobs } from "../../training/jobs/jobs.ts";
import { TrainingError } from "../../training/training-error.ts";
import type { EventStream } from "../http/sse.ts";
import { presentEvent } from "./present.ts";

const PAGE = 500;
/** Between looks at the table. A job may have dozens of events a second, and nobody reads them one by one. */
const PAUSE_MS = 500;

export interface EventStreamParts {
  jobs: Pick<Jobs, "events" | "watch">;
  log: Log;
}

/** Opens the stream. `onDrain`: the reader takes more again; `onClose`: it is gone, or the stream has ended. */
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
