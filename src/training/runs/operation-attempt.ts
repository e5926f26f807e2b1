// One attempt at an operation of a run. Whatever it makes becomes visible in the same transaction as its end. Repeating
// an attempt after a crash gives the same result.

import { randomUUID } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import type { JobEnd } from "../../store/tables/jobs.ts";
import { type ClaimedJob, LostLease } from "../../store/tables/leases.ts";
import type { ModelRecord } from "../../store/tables/models.ts";
import type { Alongside } from "../../store/tables/tables.ts";
import type { Reservation } from "../account.ts";
import type { OptimizerConfig } from "../config.ts";
import type { TrainingContext } from "../context.ts";
import type { TokenMatrix } from "../contract.ts";
import { readInput } from "../jobs/job-input.ts";
import type { JobJournal } from "../jobs/job-journal.ts";
import { optimizerStateIn, type StartingPoint, startingPoint, taskModel } from "../jobs/starting-point.ts";
import { isModelExists } from "../models.ts";
import type { Policies } from "../policies.ts";
import type { StepPublisher, TrainedStep } from "../steps/publish-step.ts";
import {
  type Command,
  type Operation,
  type OptimStepOutcome,
  operationOf,
  type PassCommand,
  type PassOutcome,
  type PublicationOutcome,
  RUNS_PROJECT,
} from "./operation.ts";

interface Attempt extends StartingPoint, ClaimedJob {
  /** The folder of the version that it works on. */
  folder: string;
  /** For what it writes beyond what was set aside when it was accepted. */
  room: Reservation;
  signal: AbortSignal;
}

export class OperationAttempts {
  readonly #context: TrainingContext;
  readonly #journal: JobJournal;
  readonly #policies: Policies;
  readonly #publisher: StepPublisher;

  constructor(context: TrainingContext, journal: JobJournal, policies: Policies, publisher: StepPublisher) {
    this.#context = context;
    this.#journal = journal;
    this.#policies = policies;
    this.#publisher = publisher;
  }

  /** Rejects with a message for the user, or with LostLease. */
  async run({ job, lease }: ClaimedJob, signal: AbortSignal): Promise<void> {
    const start = await startingPoint(job, this.#context);
    const { parentVersion, command }: Operation = operationOf(job);
    if (start.from !== parentVersion) {
      throw new Error(`the run is at version ${start.from}, not ${parentVersion}: resolve the run again to continue`);
    }
    const { folder, release } = await this.#policies.hold(start.model.id, start.from, "all", { signal, patient: true });
    const room = this.#context.account.open(job.owner);
    try {
      await this.#context.transaction(({ leaseTable }) => leaseTable.start(lease, start.from), { relaxed: true });
      signal.throwIfAborted();
      await this.#perform({ ...start, folder, job, lease, room, signal }, command);
    } finally {
      release();
      await room.release();
    }
  }

  async #perform(attempt: Attempt, command: Command): Promise<void> {
    switch (command.kind) {
      case "forward":
      case "forward_backward":
        return this.#pass(attempt, command);
      case "optim_step":
        return this.#step(attempt, command.optimizer);
      case "load_state":
        return this.#load(attempt, command);
      case "save_weights_for_sampler":
        return this.#publish(attempt, command.alias);
      case "save_state":
        // every step is kept with its optimizer state already
        return this.#finish(attempt, {}, null);
      default:
        command satisfies never;
    }
  }

  async #pass(attempt: Attempt, command: PassCommand): Promise<void> {
    const { workspace } = this.#context;
    const { job, lease, model } = attempt;
    const files = workspace.beginAttempt(job.id, lease.epoch);
    try {
      await this.#runPass(attempt, command, files.logprobs);
    } catch (error) {
      // those of a lost job belong to whoever has it
      if (!(error instanceof LostLease)) await this.#removeGradients(model.id, job.id);
      throw error;
    } finally {
      this.#clearAway(job.id, () => workspace.endAttempt(files));
    }
  }

  async #runPass(
    attempt: Attempt,
    { kind, loss, wantsLogprobs, wantsTokenIds, matrices }: PassCommand,
    logprobsPath: string,
  ): Promise<void> {
    const { workspace, trainer } = this.#context;
    const { job, model, signal } = attempt;
    const access = { signal, patient: true };
    const batch = await workspace.fetchInput(job.id, access);
    const logprobs = wantsLogprobs ? logprobsPath : null;
    const gradients = kind === "forward_backward" ? workspace.gradients(model.id, job.id) : null;
    if (gradients !== null) workspace.createGradientsFolder(model.id);
    const task = { ...taskModel(attempt, attempt.folder, this.#context), batch, loss, gradients, logprobs };
    const result = await trainer.pass(task, signal);
    signal.throwIfAborted();
    const gradientBytes = gradients === null ? 0 : statSync(gradients).size;
    if (gradients !== null) await workspace.shareGradients(model.id, job.id, access);
    const tokenIds: PassOutcome["tokenIds"] = [];
    if (wantsTokenIds) for await (const { id, ids } of readInput<TokenMatrix>(batch)) tokenIds.push({ id, ids });
    const outcome: PassOutcome = {
      ...result,
      logprobs: logprobs === null ? [] : logprobsOf(readFileSync(logprobs), matrices),
      tokenIds,
    };
    await this.#finish(attempt, outcome, null, result.rows, ({ runTable }) =>
      runTable.setGradientBytes(job.id, gradientBytes),
    );
  }

  async #step(attempt: Attempt, optimizer: OptimizerConfig): Promise<void> {
    const { runTable, workspace, trainer } = this.#context;
    const { job, model, signal } = attempt;
    const contributions = await runTable.contributions(model.id);
    if (contributions.length === 0) throw new Error("there are no gradients: send forward_backward before optim_step");
    const target = taskModel(attempt, attempt.folder, this.#context);
    const ids = contributions.map(({ id }) => id);
    const gradients: string[] = [];
    for (const id of ids) gradients.push(await workspace.fetchGradients(model.id, id, { signal, patient: true }));
    await this.#staged(attempt, async (staging) => {
      const { gradNorm } = await trainer.update(
        {
          ...target,
          gradients,
          optimizerState: optimizerStateIn(target.adapter),
          optimizer,
          output: staging,
        },
        signal,
      );
      const { learningRate } = optimizer;
      const metrics = { grad_norm: gradNorm, learning_rate: learningRate };
      const outcome: OptimStepOutcome = { contributions: ids, gradNorm, learningRate };
      await this.#newVersion(attempt, { ...attempt, staging, jobId: job.id, metrics }, outcome);
    });
  }

  /** Makes a new version with the weights of a checkpoint. Gradients of the old weights are dropped. */
  async #load(attempt: Attempt, { source, withOptimizer }: Extract<Command, { kind: "load_state" }>): Promise<void> {
    const model = await this.#context.modelTable.get(source.modelId);
    if (!model) throw new Error("the model of the checkpoint was deleted");
    await this.#staged(attempt, async (staging) => {
      const access = { signal: attempt.signal, patient: true };
      await this.#publisher.copyTo(staging, { model, step: source.step, withOptimizer }, access);
      const metrics = { loaded_step: source.step };
      await this.#newVersion(attempt, { ...attempt, staging, jobId: attempt.job.id, metrics }, {});
    });
  }

  async #newVersion(attempt: Attempt, trained: TrainedStep, outcome: object): Promise<void> {
    const { runTable } = this.#context;
    const { id } = attempt.model;
    // only these go: the next operation, on another server, may already write its own
    const kept = await runTable.keptGradients(id);
    await this.#publisher.publishTrained(trained, (step, insertStep) =>
      this.#finish(attempt, outcome, step, 0, async (tx) => {
        await insertStep(tx);
        await tx.runTable.consumeContributions(id, step);
      }),
    );
    for (const operationId of kept) await this.#removeGradients(id, operationId);
  }

  /** The end of the operation is recorded, so nothing that fails here changes it. */
  async #removeGradients(modelId: string, operationId: string): Promise<void> {
    const { workspace, log } = this.#context;
    try {
      await workspace.removeGradients(modelId, operationId);
    } catch (error) {
      log.error("gradients that are not needed any more are still there", { model: modelId, operationId, error });
    }
  }

  /** Makes the run's version the newest step of the owner's model of that name, which is made if there is none. */
  async #publish(attempt: Attempt, alias: string): Promise<void> {
    const { modelTable, bases } = this.#context;
    const { job, model, base, from } = attempt;
    const source = { model, step: from, withOptimizer: true };
    const target = await modelTable.newestNamed(model.owner, alias);
    if (!target) {
      const { createdAt: _, ...same } = model;
      const first = { ...same, id: randomUUID(), project: RUNS_PROJECT, name: alias, nextStep: from };
      try {
        await this.#publisher.publishFirst(first, base, source, {
          isReserved: true,
          commit: (insert) => this.#finish(attempt, generation(first, from), null, 0, insert),
        });
        return;
      } catch (error) {
        if (!isModelExists(error)) throw error;
        return this.#publish(attempt, alias); // another run made it meanwhile
      }
    }
    if (target.id === model.id) return this.#finish(attempt, generation(model, from), null);
    if (bases.get(target.baseModel) !== base) throw new Error(`${alias} has another base model, ${target.baseModel}`);
    const assertIdle: Alongside = async ({ jobTable }) => {
      if ((await jobTable.countOpenOf(target.id)) > 0) throw new Error(`${alias} has open training jobs`);
    };
    await assertIdle(this.#context);
    await this.#staged({ ...attempt, model: target }, async (staging) => {
      await this.#publisher.copyTo(staging, source, { signal: attempt.signal, patient: true });
      const metrics = (await modelTable.step(model.id, from))?.metrics ?? {};
      const trained = { ...attempt, model: target, staging, jobId: job.id, metrics, atLeast: from };
      await this.#publisher.publishTrained(trained, (step, insertStep) =>
        this.#finish(attempt, generation(target, step), null, 0, async (tx) => {
          await assertIdle(tx);
          await insertStep(tx);
        }),
      );
    });
  }

  async #staged({ lease, model }: Attempt, work: (staging: string) => Promise<void>): Promise<void> {
    const { workspace } = this.#context;
    const staging = workspace.newStaging(model.id, `${lease.jobId}-${lease.epoch}`);
    try {
      await work(staging);
    } finally {
      this.#clearAway(lease.jobId, () => workspace.removeStaging(staging));
    }
  }

  /** What cannot be removed now is cleared away later. It changes nothing about the end of the operation. */
  #clearAway(operationId: string, remove: () => void): void {
    try {
      remove();
    } catch (error) {
      this.#context.log.warn("files of an attempt at an operation are still there", { operationId, error });
    }
  }

  async #finish(
    { lease, room }: Attempt,
    outcome: object,
    toStep: number | null,
    tokens = 0,
    alongside?: Alongside,
  ): Promise<void> {
    const report = JSON.stringify(outcome);
    await room.take(Buffer.byteLength(report));
    const end: JobEnd = {
      ...{ status: "COMPLETED", errorMessage: null, toStep, rewardStdDev: null, tokens, report },
      event: { type: "operation_ended", data: {} },
    };
    await this.#journal.finish(lease, end, async (tx) => {
      // first: whoever lost the job must hear that, and not that the other one has made the step already
      await tx.leaseTable.renew(lease);
      await alongside?.(tx);
      await room.releaseIn(tx);
    });
    room.settle();
  }
}

function generation(
  { entity, project, name }: Pick<ModelRecord, "entity" | "project" | "name">,
  step: number,
): PublicationOutcome {
  return { generation: `${entity}/${project}/${name}:step${step}` };
}

function logprobsOf(file: Buffer, matrices: PassCommand["matrices"]): PassOutcome["logprobs"] {
  let from = 0;
  return matrices.map(({ id, shape }) => {
    const to = from + 4 * shape[0] * shape[1];
    const data = file.toString("base64", from, to);
    from = to;
    return { id, shape, data };
  });
}
