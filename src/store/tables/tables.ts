// The tables of training, all on the same thing: the store, or one of its transactions.

import type { Statements, Store, TransactionOptions } from "../store.ts";
import { AccountTable } from "./accounts.ts";
import { CurveTable, EventTable } from "./events.ts";
import { JobTable } from "./jobs.ts";
import { LeaseTable } from "./leases.ts";
import { ModelSummaryTable } from "./model-summaries.ts";
import { ModelTable } from "./models.ts";
import { NewsTable } from "./news.ts";
import { NoteTable } from "./notes.ts";
import { RunTable } from "./runs.ts";
import { ServerTable } from "./servers.ts";
import { RemovedStepTable } from "./storage.ts";

export interface Tables {
  readonly accountTable: AccountTable;
  readonly modelTable: ModelTable;
  readonly modelSummaryTable: ModelSummaryTable;
  readonly removedStepTable: RemovedStepTable;
  readonly runTable: RunTable;
  readonly jobTable: JobTable;
  readonly leaseTable: LeaseTable;
  readonly eventTable: EventTable;
  readonly curveTable: CurveTable;
  readonly newsTable: NewsTable;
  readonly noteTable: NoteTable;
  readonly serverTable: ServerTable;
}

/** Commits all of `work` or nothing, as Store.transaction does. `work` uses the tables that it is given, no others. */
export type Transaction = <R>(work: (tx: Tables) => Promise<R>, options?: TransactionOptions) => Promise<R>;

/** What is committed together with something else. */
export type Alongside = (tx: Tables) => Promise<void>;

export function tablesOn(sql: Statements): Tables {
  const eventTable = new EventTable(sql);
  return {
    accountTable: new AccountTable(sql),
    modelTable: new ModelTable(sql),
    modelSummaryTable: new ModelSummaryTable(sql),
    removedStepTable: new RemovedStepTable(sql),
    runTable: new RunTable(sql),
    jobTable: new JobTable(sql, eventTable),
    leaseTable: new LeaseTable(sql, eventTable),
    eventTable,
    curveTable: new CurveTable(sql),
    newsTable: new NewsTable(sql),
    noteTable: new NoteTable(sql),
    serverTable: new ServerTable(sql),
  };
}

export function transactionsOn(store: Store): Transaction {
  return (work, options) => store.transaction((tx) => work(tablesOn(tx)), options);
}
