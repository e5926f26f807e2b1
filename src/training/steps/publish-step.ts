// Publishes steps: a model's first one, a copy of an older one (rollback) and the result of a job. The files are moved
// into place first, then the row is committed; a step exists once its row does. If the row cannot be committed, the
// files go again. A crash in between leaves files without a row, which are cleared away later. Every publication has a
// folder of its own, so servers that publish the same step do not touch each other's files; the row decides.

import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { readModelConfig } from "../../model/checkpoint/model-config.ts";
import { loadPeft, savePeft } from "../../model/lora/peft.ts";
import { KeyedSerialWork } from "../../pacing/work.ts";
import {
  type ModelRecord,
  type NewModelRow,
  ROLLED_BACK_TO,
  type StepFiles,
  type StepRecord,
} from "../../store/tables/models.ts";
import type { Alongside, Tables } from "../../store/tables/tables.ts";
import type { Reservation } from "../account.ts";
import type { BaseModel } from "../base-models.ts";
import { DEFAULT_SEED } from "../config.ts";
import type { TrainingContext } from "../context.ts";
import { OPTIMIZER_FILE } from "../contract.ts";
import { copyStep, identityAdapter } from "../files/adapter-files.ts";
import type { Access } from "../files/shared-files.ts";
import { folderBytes } from "../files/step-folders.ts";
import type { Policies } from "../policies.ts";
import { TrainingError } from "../training-error.ts";
import { expectedStepBytes } from "./step-upkeep.ts";

/** A step whose weights another step begins with. */
export interface StepSource {
  model: ModelRecord;
  step: number;
  /** Whether the state of the optimizer comes along. */
  withOptimizer: boolean;
}

/** What a job made of a model. */
export interface TrainedStep {
  model: ModelRecord;
  base: BaseModel;
  /** Folder with the new adapter. */
  staging: string;
  jobId: string;
  metrics: Record<string, number>;
  /** The lowest number that the step may have. */
  atLeast?: number;
  /** For what the step takes beyond what was set aside for the job. */
  room: Reservation;
  /** Ends the wait for a storage that is unreachable. */
  signal: AbortSignal;
}

export interface FirstStepOptions {
  seed?: number;
  commit?: CommitFirst;
  /** What its step takes is set aside already. */
  isReserved?: boolean;
}

/** Commits a step by running `insertStep` in a transaction. */
export type CommitStep = (step: number, insertStep: Alongside) => Promise<void>;

/** Commits a model with its first step, in the same way. */
export type CommitFirst = (insert: Alongside) => Promise<void>;

export class StepPublisher {
  readonly #context: TrainingContext;
  readonly #policies: Policies;
  /** Publications of a model follow one another, so that no two take the same number. */
  readonly #publications = new KeyedSerialWork();

  constructor(context: TrainingContext, policies: Policies) {
    this.#context = context;
    this.#policies = policies;
  }

  /**
   * A new model with its first step: that of the source, or step 0, which does not change the base model. Throws if
   * somebody else took its name. `commit` runs `insert` in a transaction, with whatever belongs to it.
   */
  async publishFirst(
    model: NewModelRow,
    base: BaseModel,
    source: StepSource | null,
    { seed = DEFAULT_SEED, commit, isReserved = false }: FirstStepOptions = {},
  ): Promise<ModelRecord> {
    const { transaction, workspace, account, bases } = this.#context;
    const { owner, entity, project, name, nextStep: step } = model;
    const room = isReserved ? null : account.open(owner);
    try {
      const expected = source ? await this.#bytesOf(source) : bases.sizes(base, model.loraRank).adapter;
      await room?.setTo(expected);

      const staging = workspace.newStaging(model.id, "first");
      if (source) await this.copyTo(staging, source);
      else {
        const config = readModelConfig(base.folder);
        const lora = { rank: model.loraRank, alpha: model.loraAlpha };
        savePeft(staging, identityAdapter(config, lora, seed), config, { baseModel: base.name });
      }
      await room?.setTo(folderBytes(staging));
      const files = await workspace.publish(staging, model.id, step);
      let made: ModelRecord | null = null;
      const insert = async (tx: Tables) => {
        if (await tx.modelTable.named(owner, entity, project, name)) {
          throw new TrainingError("model_exists", { model: `${entity}/${project}/${name}` });
        }
        const forked = source ? { forkedFrom: source.model.id, forkedStep: source.step } : {};
        const record = await tx.modelTable.insert({ ...model, ...forked });
        await tx.modelTable.insertStep(model.id, step, null, files, {});
        await room?.releaseIn(tx);
        made = { ...record, nextStep: step + 1 };
      };
      await (commit === undefined ? transaction(insert) : commit(insert));
      return made!;
    } catch (error) {
      if (!(await this.#mayExist(model.id))) await this.#removeModel(model.id);
      throw error;
    } finally {
      await room?.release();
    }
  }

  /** A copy of an older step as the newest one. Throws while the model has open jobs. */
  async publishCopy(model: ModelRecord, step: number): Promise<StepRecord> {
    const made = await this.#publications.run(model.id, () => this.#copyAsNewest(model, step));
    const base = this.#context.bases.get(model.baseModel);
    if (base) await this.#policies.loadAhead(model, made, base);
    return made;
  }

  async #copyAsNewest(model: ModelRecord, step: number): Promise<StepRecord> {
    const { transaction, modelTable, workspace, account } = this.#context;
    const { id } = model;
    const next = (await modelTable.get(id))?.nextStep;
    if (next === undefined) throw new TrainingError("unknown_model", { id });
    const room = account.open(model.owner);
    const staging = workspace.newStaging(id, `rollback-${randomUUID()}`);
    let files: StepFiles | null = null;
    try {
      await room.setTo(await this.#bytesOf({ model, step, withOptimizer: true }));
      await this.copyTo(staging, { model, step, withOptimizer: true });
      const made = await workspace.publish(staging, id, next);
      files = made;
      const insert = async (tx: Tables) => {
        if (!(await tx.modelTable.get(id))) throw new TrainingError("unknown_model", { id });
        // a job that was submitted meanwhile may already train from the step before
        if ((await tx.jobTable.countOpenOf(id)) > 0) throw new TrainingError("model_busy", {});
        await tx.modelTable.insertStep(id, next, null, made, { [ROLLED_BACK_TO]: step });
        await room.releaseIn(tx);
        return (await tx.modelTable.step(id, next))!;
      };
      return await transaction(insert);
    } catch (error) {
      workspace.removeStaging(staging);
      if (files) await this.#discard(id, files.folder);
      if (await this.#mayExist(id)) throw error;
      // whoever deleted the model may have removed its folder before these files came, or the files that were to be copied
      workspace.removeEmptyModel(id);
      throw new TrainingError("unknown_model", { id }, error);
    } finally {
      await room.release();
    }
  }

  /**
   * The result of a job as the newest step. The engine loads it before clients hear of it, if it has room.
   * `commit` records the end of the job and calls `insertStep` in the same transaction.
   */
  publishTrained(trained: TrainedStep, commit: CommitStep): Promise<void> {
    return this.#publications.run(trained.model.id, () => this.#publishTrained(trained, commit));
  }

  async #publishTrained(
    { model, base, staging, jobId, metrics, atLeast = 0, room, signal }: TrainedStep,
    commit: CommitStep,
  ): Promise<void> {
    const { modelTable, workspace } = this.#context;
    const next = (await modelTable.get(model.id))?.nextStep;
    if (next === undefined) throw new Error("its model was deleted");
    const step = Math.max(next, atLeast);
    const expected = await expectedStepBytes(this.#context, model);
    await room.take(Math.max(0, folderBytes(staging) - expected));
    loadPeft(staging, readModelConfig(base.folder));
    const files = await workspace.publish(staging, model.id, step, { signal, patient: true });
    try {
      await this.#policies.loadAhead(model, { step, folder: files.folder }, base);
      await commit(step, (tx) => tx.modelTable.insertStep(model.id, step, jobId, files, metrics));
    } catch (error) {
      await this.#policies.unload(model.id, files.folder, base);
      await this.#discard(model.id, files.folder);
      throw error;
    }
  }

  /**
   * Removes the files of a step whose row was not committed. A connection that was lost during the commit leaves it
   * open whether it was, so the row is looked for. If nobody can tell, the files stay until they are cleared away.
   */
  async #discard(modelId: string, folder: string): Promise<void> {
    const { modelTable, workspace, log } = this.#context;
    try {
      if (!(await modelTable.hasFolder(modelId, folder))) await workspace.removeStep(modelId, folder);
    } catch (error) {
      log.error("files of a step that was not published are still there", { model: modelId, folder, error });
    }
  }

  /** Removes the files of a model that has no row. What is left is cleared away later. */
  async #removeModel(modelId: string): Promise<void> {
    try {
      await this.#context.workspace.removeModel(modelId);
    } catch (error) {
      this.#context.log.error("files of a model that was not made are still there", { model: modelId, error });
    }
  }

  /** Whether a model has a row. true if nobody can tell. */
  async #mayExist(modelId: string): Promise<boolean> {
    try {
      return (await this.#context.modelTable.get(modelId)) !== null;
    } catch (error) {
      this.#context.log.error("files of a model may be left that does not exist", { model: modelId, error });
      return true;
    }
  }

  /** What a copy takes, at most. A step that was removed has no bytes; `copyTo` says so. */
  async #bytesOf({ model, step }: StepSource): Promise<number> {
    return (await this.#context.modelTable.step(model.id, step))?.bytes ?? 0;
  }

  /** Throws if the step is damaged or was removed. */
  async copyTo(staging: string, { model, step, withOptimizer }: StepSource, access: Access = {}): Promise<void> {
    const base = this.#context.bases.get(model.baseModel);
    const held = await this.#policies.hold(model.id, step, withOptimizer ? "all" : "adapter", access);
    try {
      if (base) assertSound(held.folder, step, base);
      copyStep(held.folder, staging);
    } finally {
      held.release();
    }
    if (!withOptimizer) rmSync(join(staging, OPTIMIZER_FILE), { force: true });
  }
}

function assertSound(folder: string, step: number, base: BaseModel): void {
  try {
    loadPeft(folder, readModelConfig(base.folder));
  } catch (cause) {
    throw new TrainingError("damaged_step", { step }, cause);
  }
}
