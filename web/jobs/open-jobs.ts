// The jobs that wait or run, on whichever page one is, and those that ended meanwhile.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { TrainingJob } from "../../src/client/types.ts";
import type { News } from "../policy/news.ts";
import { getJson } from "../server.ts";
import { useNews } from "../use-news.ts";

export interface OpenJob {
  status: TrainingJob["status"];
  /** 0 to 1. */
  progress: number;
}

export interface EndedJob {
  id: string;
  status: TrainingJob["status"];
  message: string | null;
}

/** By id. */
export const openJobs = signal<ReadonlyMap<string, OpenJob>>(new Map());
/** Those that came to an end while the page was open, the newest last, until they are closed. */
export const endedJobs = signal<readonly EndedJob[]>([]);

/** Ids of jobs whose end was told. */
const over = new Set<string>();

/** More would hide the page. */
const MOST_ENDED = 3;
/** A tab in the background has no stream, so it looks now and then while a job is open. */
const LOOK_MS = 15_000;
const NEWEST = 100;

export function closeNotice(id: string): void {
  endedJobs.value = endedJobs.value.filter((job) => job.id !== id);
}

/** Follows the jobs while the component is shown. */
export function useOpenJobs(): void {
  useNews((news) => note(news));
  useEffect(() => {
    const gone = new AbortController();
    // server.ts has noted a refused key or a lost server
    const look = () => list(gone.signal).catch(() => {});
    void look();
    const timer = setInterval(() => {
      if (document.hidden && openJobs.value.size > 0) void look();
    }, LOOK_MS);
    return () => {
      gone.abort();
      clearInterval(timer);
      openJobs.value = new Map();
      endedJobs.value = [];
    };
  }, []);
}

function note(news: readonly News[]): void {
  for (const { event, data } of news) {
    if (event === "job") change(data.id, data.status, data.progress ?? 0, null, true);
    else if (event === "ready") void list(new AbortController().signal).catch(() => {});
  }
}

async function list(signal: AbortSignal): Promise<void> {
  const { data } = await getJson<{ data: TrainingJob[] }>("/preview/training-jobs", {
    query: { limit: NEWEST },
    signal,
  });
  for (const { id, status, progress, error_message } of data) change(id, status, progress ?? 0, error_message, false);
}

/** `isNews`: it happened now. A job in a list that nobody saw open may have ended long ago. */
function change(
  id: string,
  status: TrainingJob["status"],
  progress: number,
  message: string | null,
  isNews: boolean,
): void {
  const known = openJobs.value.get(id);
  const isOpen = status === "PENDING" || status === "RUNNING";
  if (!isOpen && known === undefined && !isNews) return;
  if (known?.status === status && known.progress === progress) return;
  // news may be told twice, and late
  if (over.has(id)) return;
  if (!isOpen) over.add(id);
  const next = new Map(openJobs.value);
  if (isOpen) next.set(id, { status, progress });
  else next.delete(id);
  openJobs.value = next;
  // whoever cancels a job knows that it ends
  if (status !== "COMPLETED" && status !== "FAILED") return;
  const others = endedJobs.value.filter((job) => job.id !== id && (status === "FAILED" || job.status === "FAILED"));
  endedJobs.value = [...others, { id, status, message }].slice(-MOST_ENDED);
}
