// Publishes steps: a model's first one, a copy of an older one (rollback) and the result of a job. The files are moved
// into place first, then the row is committed; a step exists once its row does. If the row cannot be committed, the
// files go again. A crash in between leaves files without a row, which the next start removes.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { readModelConfig } from "../../model/checkpoint/model-config.ts";
import { loadPeft, savePeft } from "../../model/lora/peft.ts";
import type { ModelRecord, StepRecord } from "../../store/model-table.ts";
import type { BaseModel } from "../base-models.ts";
import { DEFAULT_SEED } from "../config.ts";
import type { TrainingContext } from "../context.ts";
import { OPTIMIZER_FILE } from "../contract.ts";
import { copyStep, identityAdapter } from "../files/adapter-files.ts";
import { folderBytes } from "../files/workspace.ts";
import type { Policies } from "../policies.ts";
import { TrainingError } from "../training-error.ts";

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
}

export class StepPublisher {
  readonly #context: TrainingContext;
  readonly #policies: Policies;

  constructor(context: TrainingContext, policies: Policies) {
    this.#context = context;
    this.#policies = policies;
  }

  /** A new model with its first step: that of the source, or step 0, which does not change the base model. */
  publishFirst(
    model: Omit<ModelRecord, "createdAt">,
    base: BaseModel,
    source: StepSource | null,
    seed = DEFAULT_SEED,
  ): ModelRecord {
    const { store, modelTable, workspace } = this.#context;
    const step = model.nextStep;
    try {
      const staging = workspace.newStaging(model.id, "first");
      if (source) this.copyTo(staging, source);
      else {
        const config = readModelConfig(base.folder);
        const lora = { rank: model.loraRank, alpha: model.loraAlpha };
        savePeft(staging, identityAdapter(config, lora, seed), config, { baseModel: base.name });
      }
      workspace.publish(staging, model.id, step);
      return store.transaction(() => {
        const record = modelTable.insert(model);
        this.#insertStep(model.id, step, null, {});
        return { ...record, nextStep: step + 1 };
      });
    } catch (error) {
      workspace.removeModel(model.id);
      throw error;
    }
  }

  /** A copy of an older step as the newest one. */
  async publishCopy(model: ModelRecord, step: number): Promise<StepRecord> {
    const made = this.#copyAsNewest(model, step);
    const base = this.#context.bases.get(model.baseModel);
    if (base) await this.#policies.loadAhead(model, made.step, base);
    return made;
  }

  /** Without awaiting anything: two rollbacks, or a rollback and a job, cannot take the same number. */
  #copyAsNewest(model: ModelRecord, step: number): StepRecord {
    const { store, modelTable, workspace } = this.#context;
    const { id, nextStep } = model;
    const staging = workspace.newStaging(id, `rollback-${nextStep}`);
    try {
      this.copyTo(staging, { model, step, withOptimizer: true });
      workspace.publish(staging, id, nextStep);
      return store.transaction(() => {
        this.#insertStep(id, nextStep, null, { rolled_back_to: step });
        return modelTable.step(id, nextStep)!;
      });
    } catch (error) {
      workspace.removeStaging(staging);
      workspace.removeStep(id, nextStep);
      throw error;
    }
  }

  /**
   * The result of a job as the newest step. The engine loads it before clients hear of it, if it has room.
   * `commit` records the end of the job and calls `insertStep` in the same transaction.
   */
  async publishTrained(
    { model, base, staging, jobId, metrics, atLeast = 0 }: TrainedStep,
    commit: (step: number, insertStep: () => void) => void,
  ): Promise<void> {
    const { modelTable, workspace } = this.#context;
    const next = modelTable.get(model.id)?.nextStep;
    if (next === undefined) throw new Error("its model was deleted");
    const step = Math.max(next, atLeast);
    workspace.publish(staging, model.id, step);
    try {
      loadPeft(workspace.stepFolder(model.id, step), readModelConfig(base.folder));
      await this.#policies.loadAhead(model, step, base);
      commit(step, () => this.#insertStep(model.id, step, jobId, metrics));
    } catch (error) {
      await this.#policies.unload(model.id, step, base);
      workspace.removeStep(model.id, step);
      throw error;
    }
  }

  #insertStep(modelId: string, step: number, jobId: string | null, metrics: Record<string, number>): void {
    const { modelTable, workspace } = this.#context;
    modelTable.insertStep(modelId, step, jobId, folderBytes(workspace.stepFolder(modelId, step)), metrics);
  }

  /** Throws if the step is damaged. */
  copyTo(staging: string, { model, step, withOptimizer }: StepSource): void {
    const { bases, workspace } = this.#context;
    const folder = workspace.stepFolder(model.id, step);
    const base = bases.get(model.baseModel);
    try {
      if (base) loadPeft(folder, readModelConfig(base.folder));
    } catch (cause) {
      throw new TrainingError("damaged_step", { step }, cause);
    }
    copyStep(folder, staging);
    if (!withOptimizer) rmSync(join(staging, OPTIMIZER_FILE), { force: true });
  }
}
