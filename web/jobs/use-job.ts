// A job with its groups, kept fresh by its events while it is open.

import { useEffect, useMemo, useState } from "preact/hooks";
import type { TrainingEvent, TrainingJob } from "../../src/client/types.ts";
import { type Query, useQuery } from "../parts/use-query.ts";
import { getJson } from "../server.ts";
import { followJob, jobPath } from "../training-jobs.ts";
import { type Groups, loadGroups } from "./records.ts";

/** Events come faster than anyone reads. */
const SHOW_MS = 500;

export interface LiveJob {
  job: Query<TrainingJob>;
  groups: Query<Groups>;
  gradientSteps: readonly TrainingEvent[];
  warnings: readonly TrainingEvent[];
}

/** `pages`: how many pages of groups to load. */
export function useJob(id: string, pages: number): LiveJob {
  const job = useQuery(id, (signal) => getJson<TrainingJob>(jobPath(id), { signal }));
  const groups = useQuery(`${id} ${pages}`, (signal) => loadGroups(id, pages, signal));
  const [events, setEvents] = useState<readonly TrainingEvent[]>([]);
  const isKnown = job.data !== null;
  useEffect(() => {
    if (!isKnown) return;
    const isNew = job.data!.status === "PENDING";
    const isOpen = isNew || job.data!.status === "RUNNING";
    const gone = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isStale = false;
    const seen: TrainingEvent[] = [];
    const show = () => {
      timer = undefined;
      setEvents([...seen]);
      if (isStale) job.reload();
      isStale = false;
    };
    const note = (event: TrainingEvent) => {
      // A job that is over stays as it is, and every gradient step but the first tells all that it changes; the job itself
      // may be megabytes.
      isStale ||= isOpen && (event.type !== "gradient_step" || seen.at(-1)?.type !== "gradient_step");
      seen.push(event);
      timer ??= setTimeout(show, SHOW_MS);
      if (isNew && event.type === "training_started") groups.reload(); // the verdicts are there now
    };
    // server.ts notes a refused key or a lost server
    followJob(id, note, gone.signal).catch(() => {});
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, [id, isKnown]);
  const ofType = (type: string) => events.filter((event) => event.type === type);
  const gradientSteps = useMemo(() => ofType("gradient_step"), [events]);
  const warnings = useMemo(() => ofType("training_warning"), [events]);
  return { job, groups, gradientSteps, warnings };
}
