// Training runs as clients see them. A run is a model that its client trains operation by operation. Operations are
// numbered by the client, and repeated requests return the operation that exists. They wait and run as jobs of the
// model, in order; operation-attempt.ts runs them.

import { randomUUID } from "node:crypto";
import { CommitUnknown } from "../../errors/faults.ts";
import { isFinal, type JobRecord, rowBytes } from "../../store/tables/jobs.ts";
import type { RunRecord } from "../../store/tables/runs.ts";
import type { Tables } from "../../store/tables/tables.ts";
import type { Reservation } from "../account.ts";
import type { BaseModel } from "../base-models.ts";
import type { TrainingContext } from "../context.ts";
import type { JobJournal } from "../jobs/job-journal.ts";
import type { JobRunner } from "../jobs/job-runner.ts";
import type { JobDraft, Jobs } from "../jobs/jobs.ts";
import { assertFree } from "../models.ts";
import type { StepPublisher, StepSource } from "../steps/publish-step.ts";
import { expectedStepBytes } from "../steps/step-upkeep.ts";
import { TrainingError } from "../training-error.ts";
import {
  type CheckpointId,
  type Command,
  isTransition,
  type Operation,
  operationBytes,
  RUNS_PROJECT,
} from "./operation.ts";

export interface NewRun {
  owner: string;
  entity: string;
  requestId: string;
  name: string | null;
  baseModel: string;
  loraRank: number;
  seed: number | null;
  /** JSON of all settings, to compare and to return. */
  spec: string;
  from: (CheckpointId & { withOptimizer: boolean }) | null;
}

export interface NewOperation {
  requestId: string;
  sequenceId: number;
  command: Command;
  /** Hash of the request, to tell a repeated one from a reused id. */
  requestHash: string;
  /** The data of a pass. */
  draft: JobDraft | null;
}

export interface RunView {
  run: RunRecord;
  status: "open" | "closing" | "closed";
  nextSequenceId: number;
  committedVersion: number;
  /** The version after all operations that were accepted. */
  projectedVersion: number;
}

export class Runs {
  readonly #context: TrainingContext;
  readonly #publisher: StepPublisher;
  readonly #journal: JobJournal;
  readonly #runner: JobRunner;
  readonly #jobs: Jobs;

  constructor(context: TrainingContext, publisher: StepPublisher, journal: JobJournal, runner: JobRunner, jobs: Jobs) {
    this.#context = context;
    this.#publisher = publisher;
    this.#journal = journal;
    this.#runner = runner;
    this.#jobs = jobs;
  }

  /** The run of that name, or of that request. A closed one is opened again; a new one is made if there is none. */
  async resolve(request: NewRun): Promise<RunView> {
    this.#checkOffered();
    const known = await this.#context.transaction((tx) => reopen(request, tx));
    if (known) return known;
    try {
      return await this.#create(request);
    } catch (error) {
      // somebody else may have made it meanwhile
      const made = await this.#context.transaction((tx) => reopen(request, tx));
      if (made) return made;
      throw error;
    }
  }

  owned(id: string, owner: string): Promise<RunRecord> {
    return ownedIn(this.#context, id, owner);
  }

  view(id: string, owner: string): Promise<RunView> {
    return this.#context.transaction(async (tx) => viewOf(await ownedIn(tx, id, owner), tx));
  }

  /** Throws if the run's base model is not served any more. */
  async baseOf({ modelId }: RunRecord): Promise<BaseModel> {
    this.#checkOffered();
    const model = await this.#context.modelTable.get(modelId);
    if (!model) throw new TrainingError("unknown_run", { id: modelId });
    const { baseModel, name } = model;
    const base = this.#context.bases.get(baseModel);
    if (!base) throw new TrainingError("base_model_gone", { baseModel, model: name });
    return base;
  }

  /** Accepted operations still run; new ones are refused until the run is resolved again. */
  close(id: string, owner: string): Promise<RunView> {
    return this.#context.transaction(async (tx) => {
      const run = await ownedIn(tx, id, owner);
      await tx.runTable.setClosed(id, true);
      return viewOf({ ...run, closed: true }, tx);
    });
  }

  /** Accepts an operation. Once this returns, it will run or end with a reason, even if the process crashes. */
  async submit(run: RunRecord, request: NewOperation): Promise<JobRecord> {
    this.#checkOffered();
    const { job, created } = await this.#accept(run, request);
    if (created) await this.#runner.wake();
    await this.#journal.countJobs();
    return job;
  }

  async operation(runId: string, owner: string, id: string): Promise<JobRecord> {
    const { modelId } = await this.owned(runId, owner);
    const job = await this.#context.runTable.operation(modelId, id);
    if (!job) throw new TrainingError("unknown_operation", { id });
    return job;
  }

  /** Ends an open operation. The gradients of a finished forward_backward leave the next optim_step. */
  async cancel(runId: string, owner: string, id: string): Promise<JobRecord> {
    const job = await this.operation(runId, owner, id);
    const status = await this.#jobs.stop(job.id);
    if (status !== null && isFinal(status) && job.kind === "forward_backward") await this.#dropGradients(job);
    return this.operation(runId, owner, id);
  }

  /** An operation that runs may read them: then the next version removes them. */
  async #dropGradients({ id, modelId }: JobRecord): Promise<void> {
    const { transaction, runTable, workspace } = this.#context;
    const mayBeRead = await transaction(async ({ jobTable }) => {
      await jobTable.requestCancel(id);
      return (await jobTable.openOf(modelId)).some(({ status }) => status === "RUNNING");
    });
    if (mayBeRead) return;
    await workspace.removeGradients(modelId, id);
    await runTable.setGradientBytes(id, 0);
  }

  /** The stored outcome of an operation, as JSON. */
  result(job: JobRecord): string {
    if (job.status !== "COMPLETED" || job.report === null) throw new TrainingError("no_result", { status: job.status });
    return job.report;
  }

  async release(runId: string, owner: string, id: string): Promise<void> {
    const job = await this.operation(runId, owner, id);
    await this.#context.runTable.dropResult(job.id);
  }

  /** The new operation, or the one that this request made before. */
  async #accept(run: RunRecord, request: NewOperation): Promise<{ job: JobRecord; created: boolean }> {
    const { draft } = request;
    const room = draft?.room ?? this.#context.account.open(run.owner);
    const discard = () => (draft ? this.#jobs.discard(draft) : room.release());
    try {
      await draft?.input.finish();
      // one that was accepted before needs no room
      const known = await knownOperation(run, request, this.#context);
      const openBytes = known ? 0 : await this.#makeRoom(run, request, room);
      if (draft && !known) await this.#jobs.share(draft);
      const insert = async (tx: Tables) => {
        const known = await knownOperation(run, request, tx);
        if (known) return { job: known, created: false };
        await room.releaseIn(tx);
        return { job: await this.#insert(run, request, openBytes, tx), created: true };
      };
      const accepted = await this.#context.transaction(insert);
      if (accepted.created) room.settle();
      else await discard();
      return accepted;
    } catch (error) {
      // one that may have been accepted keeps its data
      if (error instanceof CommitUnknown) room.settle();
      else await discard();
      throw error;
    }
  }

  /** Sets aside what the operation needs while it is open, and returns how much that is. */
  async #makeRoom(run: RunRecord, { command, draft }: NewOperation, room: Reservation): Promise<number> {
    const { modelTable, bases } = this.#context;
    const { modelId } = run;
    const model = await modelTable.get(modelId);
    if (!model) throw new TrainingError("unknown_run", { id: modelId });
    const base = bases.get(model.baseModel);
    const gradients = base ? bases.sizes(base, model.loraRank).gradients : 0;
    const step = await expectedStepBytes(this.#context, model);
    const bytes = (draft?.input.bytes ?? 0) + operationBytes(command, { step, gradients });
    await room.setTo(bytes + rowBytes(JSON.stringify(command)));
    return bytes;
  }

  async #insert(run: RunRecord, request: NewOperation, openBytes: number, tx: Tables): Promise<JobRecord> {
    const { requestId, sequenceId, command, requestHash, draft } = request;
    const { owner, modelId } = run;
    const { status, nextSequenceId, projectedVersion } = await viewOf(await ownedIn(tx, modelId, owner), tx);
    if (status !== "open") throw new TrainingError("run_closed", { id: modelId });
    if (sequenceId !== nextSequenceId) {
      throw new TrainingError("out_of_sequence", { expected: nextSequenceId, got: sequenceId });
    }
    await this.#check(command, run, tx);
    await this.#jobs.assertFewJobs(owner, tx);
    const outputVersion = isTransition(command.kind) ? projectedVersion + 1 : null;
    const operation: Operation = { requestId, sequenceId, parentVersion: projectedVersion, outputVersion, command };
    const config = JSON.stringify(operation);
    const row = {
      id: draft?.id ?? randomUUID(),
      modelId,
      owner,
      kind: command.kind,
      config,
      idempotencyKey: keyOf(run, request),
      requestHash,
    };
    return tx.jobTable.insert({ ...row, openBytes, recordBytes: 0 });
  }

  async #check(command: Command, { modelId, owner }: RunRecord, tx: Tables): Promise<void> {
    if (command.kind === "save_weights_for_sampler") assertFree(command.alias, this.#context);
    if (command.kind !== "load_state") return;
    const { model } = await checkpointIn(tx, command.source, owner);
    const { baseModel, loraRank } = (await tx.modelTable.get(modelId))!;
    if (model.baseModel !== baseModel) throw new TrainingError("fork_changes_base_model", { baseModel });
    const rank = model.loraRank;
    if (rank !== loraRank) throw new TrainingError("rank_differs", { rank, wanted: loraRank });
  }

  /** A run may be from a time when the server had another trainer. */
  #checkOffered(): void {
    if (!this.#context.settings.offersRuns) throw new TrainingError("no_runs", {});
  }

  async #create({
    owner,
    entity,
    requestId,
    name,
    baseModel,
    loraRank: rank,
    seed,
    spec,
    from,
  }: NewRun): Promise<RunView> {
    const { bases, settings } = this.#context;
    const base = bases.get(baseModel);
    if (!base) throw new TrainingError("unknown_base_model", { baseModel, known: bases.names() });
    bases.assertUnchanged(base);
    const limit = base.engine.info.maxLoraRank;
    if (rank > limit) throw new TrainingError("rank_too_large", { model: name ?? "this run", rank, limit });
    const source = from && { ...(await checkpointIn(this.#context, from, owner)), withOptimizer: from.withOptimizer };
    if (source && bases.get(source.model.baseModel) !== base) {
      throw new TrainingError("fork_changes_base_model", { baseModel: source.model.baseModel });
    }
    if (source && source.model.loraRank !== rank) {
      throw new TrainingError("rank_differs", { rank: source.model.loraRank, wanted: rank });
    }
    const id = randomUUID();
    const names = { id, owner, entity, project: RUNS_PROJECT, name: `run-${id.slice(0, 8)}`, baseModel: base.name };
    const lora = { loraRank: rank, loraAlpha: source?.model.loraAlpha ?? settings.lora.alpha };
    const step = source?.step ?? 0;
    const run = { modelId: id, owner, requestId, name, spec };
    await this.#publisher.publishFirst({ ...names, ...lora, nextStep: step }, base, source, {
      ...(seed === null ? {} : { seed }),
      commit: (insert) =>
        this.#context.transaction(async (tx) => {
          await insert(tx);
          await tx.runTable.insert(run);
        }),
    });
    const versions = { committedVersion: step, projectedVersion: step };
    return { run: { ...run, closed: false }, status: "open", nextSequenceId: 0, ...versions };
  }
}

function keyOf({ modelId }: RunRecord, { requestId }: NewOperation): string {
  return `${modelId}/${requestId}`;
}

/** The operation that this request made before. */
async function knownOperation(run: RunRecord, request: NewOperation, { jobTable }: Tables): Promise<JobRecord | null> {
  const known = await jobTable.byIdempotencyKey(run.owner, keyOf(run, request));
  if (known && known.requestHash !== request.requestHash) {
    throw new TrainingError("request_id_reused", { requestId: request.requestId });
  }
  return known;
}

async function ownedIn({ runTable }: Tables, id: string, owner: string): Promise<RunRecord> {
  const run = await runTable.owned(id, owner);
  if (!run) throw new TrainingError("unknown_run", { id });
  return run;
}

/** Must run in a transaction: the numbers belong together. */
async function viewOf(run: RunRecord, { modelTable, runTable, jobTable }: Tables): Promise<RunView> {
  const committedVersion = (await modelTable.newestStep(run.modelId))!.step;
  const busy = run.closed && (await jobTable.countOpenOf(run.modelId)) > 0;
  return {
    run,
    status: busy ? "closing" : run.closed ? "closed" : "open",
    nextSequenceId: await runTable.countOperations(run.modelId),
    committedVersion,
    projectedVersion: committedVersion + (await runTable.countOpenTransitions(run.modelId)),
  };
}

/** The run that a request means, opened again if it was closed. null = there is none. Must run in a transaction. */
async function reopen({ owner, requestId, name, spec }: NewRun, tx: Tables): Promise<RunView | null> {
  const { runTable } = tx;
  const named = name === null ? null : await runTable.named(owner, name);
  const known = named ?? (await runTable.byRequest(owner, requestId));
  if (!known) return null;
  if (known.name !== name) throw new TrainingError("request_id_reused", { requestId });
  if (known.spec !== spec) throw new TrainingError("run_differs", { name: name ?? requestId });
  if (known.closed) await runTable.setClosed(known.modelId, false);
  return viewOf({ ...known, closed: false }, tx);
}

/** Throws unless the owner has this step. */
async function checkpointIn(
  { modelTable }: Tables,
  { modelId, step }: CheckpointId,
  owner: string,
): Promise<Omit<StepSource, "withOptimizer">> {
  const model = await modelTable.owned(modelId, owner);
  if (!model || !(await modelTable.hasStep(modelId, step))) {
    throw new TrainingError("unknown_checkpoint", { id: `${modelId}@${step}` });
  }
  return { model, step };
}
