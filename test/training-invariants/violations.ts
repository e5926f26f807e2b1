// What must be true of a store and its training files whatever happened to the servers: crashes, pauses, cut connections.
// Every test that causes such things calls it at the end, when no job is open and no server is at work any more.
//   I1  every accepted job has ended, once
//   I2  the steps of a model are numbered without gaps and in the order of their jobs, and row, folder and digest agree
//   I4  the events of a job are in order: one start, the gradient steps, one end
//   I5  no folder of a row is missing, and none without a row is older than the grace
//   I6  clients saw no failure of a server but those that say when to try again, or to look first

import type { Store } from "../../src/store/store.ts";
import { tablesOn } from "../../src/store/tables/tables.ts";
import { wrongFolders, wrongSteps } from "./files.ts";
import { readJobs, wrongEvents } from "./jobs.ts";

export interface Evidence {
  store: Store;
  /** The folder of training files. */
  folder: string;
  /** Ids of jobs that were accepted and whose models still exist. Without it, those in the table. */
  accepted?: readonly string[];
  /** Replies with a status of 500 or more that clients saw. */
  serverErrors?: readonly ServerError[];
  /** Files without a row may be this old, in milliseconds: a server may be at work on them. */
  graceMs?: number;
  /** Steps were deleted, so that numbers may be missing. */
  stepsDeleted?: boolean;
}

export interface ServerError {
  status: number;
  /** What was asked, and the reply. */
  message: string;
  /** Whether it says when to try again. */
  retryAfter: boolean;
}

const FINAL = new Set(["COMPLETED", "FAILED", "CANCELLED"]);

/** Returns what is wrong, one sentence each. */
export async function violations({ store, folder, ...rest }: Evidence): Promise<string[]> {
  const tables = tablesOn(store);
  const jobs = await readJobs(store);
  const statuses = new Map(jobs.map(({ id, status }) => [id, status]));
  return [
    ...(rest.accepted ?? []).filter((id) => !statuses.has(id)).map((id) => `the accepted job ${id} is gone`),
    ...jobs.filter(({ status }) => !FINAL.has(status)).map(({ id, status }) => `job ${id} is ${status}`),
    ...(await wrongEvents(store, jobs)),
    ...(await wrongSteps(tables, jobs, folder, rest.stepsDeleted ?? false)),
    ...(await wrongFolders(tables, jobs, folder, rest.graceMs ?? 0)),
    ...undeclared(rest.serverErrors ?? []),
  ];
}

/** The reply when the database crashed during a commit: only the client can know what it wanted. */
export const OUTCOME_UNKNOWN = "Look whether it took effect before you repeat it.";

/** While a server stops, the database is unreachable or the disk is full, clients are told so, and when to try again. */
function undeclared(errors: readonly ServerError[]): string[] {
  return errors
    .filter(({ status, retryAfter }) => status !== 507 && !(status === 503 && retryAfter))
    .filter(({ status, message }) => status !== 500 || !message.includes(OUTCOME_UNKNOWN))
    .map(({ status, message }) => `a client got ${status}: ${message}`);
}
