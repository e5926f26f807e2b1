// What every part of training shares: tables, files, models and settings. The service builds it once; nothing in it is
// replaced later. A name means the same everywhere: `modelTable` holds rows, `models` is what clients may do with them.

import type { Log } from "../observe/log.ts";
import type { Store } from "../store/store.ts";
import type { Tables, Transaction } from "../store/tables/tables.ts";
import type { Account } from "./account.ts";
import type { BaseModels } from "./base-models.ts";
import type { Trainer } from "./contract.ts";
import type { LoraShape } from "./files/adapter-files.ts";
import type { StepFolders } from "./files/step-folders.ts";
import type { RecordBound, Records } from "./records/records.ts";

export interface TrainingContext extends Tables {
  /** For what must not be interrupted. Uses the tables that it passes on, not those of this context. */
  transaction: Transaction;
  /** Tells the servers on the same store what to look at (jobs/job-journal.ts). */
  hints: Pick<Store, "notify" | "listen">;
  /** Who this server is among those on the same store. */
  server: ServerPart;
  times: LeaseTimes;
  workspace: StepFolders;
  account: Account;
  records: Records;
  bases: BaseModels;
  trainer: Trainer;
  settings: TrainingSettings;
  observer: JobObserver | null;
  log: Log;
}

export interface ServerPart {
  id: string;
  /** Whether it runs jobs. */
  runsJobs: boolean;
  /** No other server uses the store: what is marked as running at the start runs nowhere. */
  alone: boolean;
}

/** In milliseconds. */
export interface LeaseTimes {
  /** How long a job stays with a server that is not heard of. */
  lease: number;
  /** How often a server renews the leases of its jobs, and sees that one was cancelled elsewhere. */
  renew: number;
  /** How often expired leases are looked for. */
  sweep: number;
  /** How often a server looks for work and events that it was not told of. */
  poll: number;
}

/** A holder that misses two renewals still has its lease. */
export function leaseTimes(lease: number): LeaseTimes {
  return { lease, renew: lease / 3, sweep: lease / 6, poll: 2_000 };
}

export const LEASE_TIMES = leaseTimes(30_000);

export interface TrainingSettings {
  /** Shape of the adapters of new models. */
  lora: LoraShape;
  /** Jobs that run at the same time, each of another model. */
  maxParallelJobs: number;
  /** How long the files of a removed step stay, in milliseconds. 0 = until nobody here uses them. */
  stepGraceMs: number;
  /** Steps kept per model. The oldest go first, but never the newest or one in use. */
  maxStepsPerModel: number;
  /** Waiting and running jobs of one owner. */
  maxOpenJobs: number;
  /** Bytes of everything that one owner has on disk (account.ts). */
  maxBytesPerOwner: number;
  /** How many records of jobs are kept for one owner, and how long. */
  keepRecords: RecordBound;
  /** Threads of a trainer. */
  threads: number;
  /** Memory for the activations of a pass, in bytes. */
  activationBytes: number;
  /** Whether another served model has this name. A policy with it could never be reached. */
  isServedName(name: string): boolean;
  /** Whether the trainer takes the operations of training runs: passes and updates. */
  offersRuns: boolean;
}

/** Counts what happens, for metrics. */
export interface JobObserver {
  trainingJobs(waiting: number, running: number): void;
  gradientStep(): void;
  trainingJobEnded(status: string, seconds: number, tokens: number): void;
}
