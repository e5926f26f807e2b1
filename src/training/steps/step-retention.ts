// Removes steps: those that clients delete, and the oldest ones when a model has too many. The row goes first, so that
// nobody can ask for the step any more. Its adapter and its files follow (file-upkeep.ts).

import { join } from "node:path";
import type { TrainingContext } from "../context.ts";
import type { CurveWriter } from "../files/curves.ts";
import type { Policies } from "../policies.ts";
import type { FileUpkeep } from "./file-upkeep.ts";

export class StepRetention {
  readonly #context: TrainingContext;
  readonly #policies: Policies;
  readonly #files: FileUpkeep;
  readonly #curves: CurveWriter;

  constructor(context: TrainingContext, policies: Policies, files: FileUpkeep, curves: CurveWriter) {
    this.#context = context;
    this.#policies = policies;
    this.#files = files;
    this.#curves = curves;
  }

  /** Returns false if somebody uses the step, which then stays. */
  async remove(modelId: string, step: number): Promise<boolean> {
    const { transaction, workspace } = this.#context;
    const deleteRow = () =>
      transaction(async ({ modelTable, removedStepTable }) => {
        if (await modelTable.isTrainedFrom(modelId, step)) return false;
        const owner = (await modelTable.get(modelId))?.owner;
        const files = await modelTable.deleteStep(modelId, step);
        if (owner === undefined || files === null) return true;
        const [folder, removedAt] = [join(modelId, files.folder), Date.now()];
        await removedStepTable.insert({ modelId, step, folder, removedAt, owner, bytes: files.bytes });
        return true;
      });
    const removed = await workspace.makingRoom(() => this.#policies.unlessUsed(modelId, step, deleteRow));
    if (removed) await this.#files.sweep();
    return removed;
  }

  /** Follows every new step but the first: completes the curves, then removes the oldest steps beyond the limit. */
  async afterStep(modelId: string): Promise<void> {
    const { modelTable, workspace, settings, log } = this.#context;
    workspace.keepReserve();
    // before the steps go: the curves are made from them
    await this.#curves.write(modelId);
    try {
      if ((await modelTable.countSteps(modelId)) <= settings.maxStepsPerModel) return;
      const steps = await modelTable.steps(modelId);
      // of this list, because another call may have removed some since they were counted
      let excess = steps.length - settings.maxStepsPerModel;
      for (const { step } of steps.slice(0, -1)) {
        if (excess <= 0) return;
        if (await this.remove(modelId, step)) excess--;
      }
    } catch (error) {
      log.error("old steps of a model could not be removed", { model: modelId, error });
    }
  }
}
