// Training runs as clients see them. A run is a model that its client trains operation by operation. Operations are
// numbered by the client, and repeated requests return the operation that exists. They wait and run as jobs of the
// model, in order; operation-attempt.ts runs them.

import { randomUUID } from "node:crypto";
import { isFinal } from "../../store/job-state.ts";
import type { JobRecord } from "../../store/job-table.ts";
import type { RunRecord } from "../../store/run-table.ts";
import type { BaseModel } from "../base-models.ts";
import type { TrainingContext } from "../context.ts";
import type { JobJournal } from "../jobs/job-journal.ts";
import type { JobRunner } from "../jobs/job-runner.ts";
import type { JobDraft, Jobs } from "../jobs/jobs.ts";
import { assertFree } from "../models.ts";
import type { StepPublisher, StepSource } from "../steps/publish-step.ts";
import { TrainingError } from "../training-error.ts";
import { type CheckpointId, type Command, isTransition, type Operation, RUNS_PROJECT } from "./operation.ts";

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
  resolve(request: NewRun): RunView {
    const { runTable } = this.#context;
    const { owner, requestId, name, spec } = request;
    const known = (name !== null ? runTable.named(owner, name) : null) ?? runTable.byRequest(owner, requestId);
    if (!known) return this.view(this.#create(request));
    if (known.name !== name) throw new TrainingError("request_id_reused", { requestId });
    if (known.spec !== spec) throw new TrainingError("run_differs", { name: name ?? requestId });
    if (known.closed) runTable.setClosed(known.modelId, false);
    return this.view({ ...known, closed: false });
  }

  owned(id: string, owner: string): RunRecord {
    const run = this.#context.runTable.owned(id, owner);
    if (!run) throw new TrainingError("unknown_run", { id });
    return run;
  }

  view(run: RunRecord): RunView {
    const { modelTable, runTable, jobTable } = this.#context;
    const committedVersion = modelTable.newestStep(run.modelId)!.step;
    const busy = run.closed && jobTable.countOpenOf(run.modelId) > 0;
    return {
      run,
      status: busy ? "closing" : run.closed ? "closed" : "open",
      nextSequenceId: runTable.countOperations(run.modelId),
      committedVersion,
      projectedVersion: committedVersion + runTable.countOpenTransitions(run.modelId),
    };
  }

  /** Throws if the run's base model is not served any more. */
  baseOf(run: RunRecord): BaseModel {
    const { baseModel, name } = this.#context.modelTable.get(run.modelId)!;
    const base = this.#context.bases.get(baseModel);
    if (!base) throw new TrainingError("base_model_gone", { baseModel, model: name });
    return base;
  }

  /** Accepted operations still run; new ones are refused until the run is resolved again. */
  close(id: string, owner: string): RunView {
    const run = this.owned(id, owner);
    this.#context.runTable.setClosed(id, true);
    return this.view({ ...run, closed: true });
  }

  /** Accepts an operation. Once this returns, it will run or end with a reason, even if the process crashes. */
  async submit(run: RunRecord, request: NewOperation): Promise<JobRecord> {
    let accepted = false;
    try {
      await request.draft?.input.finish();
      const { job, created } = this.#context.store.transaction(() => this.#insert(run, request));
      accepted = created;
      if (created) this.#runner.pump();
      this.#journal.countJobs();
      return job;
    } finally {
      if (!accepted && request.draft) await this.#jobs.discard(request.draft);
    }
  }

  operation(runId: string, owner: string, id: string): JobRecord {
    const job = this.#context.runTable.operation(this.owned(runId, owner).modelId, id);
    if (!job) throw new TrainingError("unknown_operation", { id });
    return job;
  }

  /** Ends an open operation. The gradients of a finished forward_backward leave the next optim_step. */
  cancel(runId: string, owner: string, id: string): JobRecord {
    const job = this.operation(runId, owner, id);
    if (!isFinal(job.status)) this.#jobs.stop(job);
    else if (job.kind === "forward_backward") this.#context.jobTable.requestCancel(id);
    return this.operation(runId, owner, id);
  }

  /** The stored outcome of an operation, as JSON. */
  result(job: JobRecord): string {
    if (job.status !== "COMPLETED" || job.report === null) throw new TrainingError("no_result", { status: job.status });
    return job.report;
  }

  release(runId: string, owner: string, id: string): void {
    const job = this.operation(runId, owner, id);
    this.#context.runTable.dropResult(job.id);
  }

  /** Throws unless the owner has this step. */
  checkpoint({ modelId, step }: CheckpointId, owner: string): Omit<StepSource, "withOptimizer"> {
    const model = this.#context.modelTable.owned(modelId, owner);
    if (!model || !this.#context.modelTable.step(modelId, step)) {
      throw new TrainingError("unknown_checkpoint", { id: `${modelId}@${step}` });
    }
    return { model, step };
  }

  #insert(run: RunRecord, request: NewOperation): { job: JobRecord; created: boolean } {
    const { jobTable } = this.#context;
    const { requestId, sequenceId, command, requestHash, draft } = request;
    const { owner, modelId } = run;
    const idempotencyKey = `${modelId}/${requestId}`;
    const known = jobTable.byIdempotencyKey(owner, idempotencyKey);
    if (known && known.requestHash !== requestHash) throw new TrainingError("request_id_reused", { requestId });
    if (known) return { job: known, created: false };
    const { status, nextSequenceId, projectedVersion } = this.view(this.owned(modelId, owner));
    if (status !== "open") throw new TrainingError("run_closed", { id: modelId });
    if (sequenceId !== nextSequenceId) {
      throw new TrainingError("out_of_sequence", { expected: nextSequenceId, got: sequenceId });
    }
    this.#check(command, run);
    this.#jobs.checkLimits(owner);
    const outputVersion = isTransition(command.kind) ? projectedVersion + 1 : null;
    const operation: Operation = { requestId, sequenceId, parentVersion: projectedVersion, outputVersion, command };
    const config = JSON.stringify(operation);
    const row = {
      id: draft?.id ?? randomUUID(),
      modelId,
      owner,
      kind: command.kind,
      config,
      idempotencyKey,
      requestHash,
    };
    return { job: jobTable.insert(row), created: true };
  }

  #check(command: Command, { modelId, owner }: RunRecord): void {
    const { modelTable } = this.#context;
    if (command.kind === "save_weights_for_sampler") assertFree(command.alias, this.#context);
    if (command.kind !== "load_state") return;
    const { model } = this.checkpoint(command.source, owner);
    const { baseModel, loraRank } = modelTable.get(modelId)!;
    if (model.baseModel !== baseModel) throw new TrainingError("fork_changes_base_model", { baseModel });
    const rank = model.loraRank;
    if (rank !== loraRank) throw new TrainingError("rank_differs", { rank, wanted: loraRank });
  }

  #create({ owner, entity, requestId, name, baseModel, loraRank: rank, seed, spec, from }: NewRun): RunRecord {
    const { bases, settings, runTable } = this.#context;
    const base = bases.get(baseModel);
    if (!base) throw new TrainingError("unknown_base_model", { baseModel, known: bases.names() });
    bases.assertUnchanged(base);
    const limit = base.engine.info.maxLoraRank;
    if (rank > limit) throw new TrainingError("rank_too_large", { model: name ?? "this run", rank, limit });
    const source = from && { ...this.checkpoint(from, owner), withOptimizer: from.withOptimizer };
    if (source && bases.get(source.model.baseModel) !== base) {
      throw new TrainingError("fork_changes_base_model", { baseModel: source.model.baseModel });
    }
    if (source && source.model.loraRank !== rank) {
      throw new TrainingError("rank_differs", { rank: source.model.loraRank, wanted: rank });
    }
    const id = randomUUID();
    const names = { id, owner, entity, project: RUNS_PROJECT, name: `run-${id.slice(0, 8)}`, baseModel: base.name };
    const lora = { loraRank: rank, loraAlpha: source?.model.loraAlpha ?? settings.lora.alpha };
    this.#publisher.publishFirst({ ...names, ...lora, nextStep: source?.step ?? 0 }, base, source, seed ?? undefined);
    return runTable.insert({ modelId: id, owner, requestId, name, spec });
  }
}
