// Removes steps: those that clients delete, and the oldest ones when a model has too many. The row goes first, so that
// nobody can ask for the step any more; then its adapter leaves the engine and its files go.

import type { TrainingContext } from "../context.ts";
import type { CurveWriter } from "../files/curves.ts";
import type { Policies } from "../policies.ts";

export class StepRetention {
  readonly #context: TrainingContext;
  readonly #policies: Policies;
  readonly #curves: CurveWriter;

  constructor(context: TrainingContext, policies: Policies, curves: CurveWriter) {
    this.#context = context;
    this.#policies = policies;
    this.#curves = curves;
  }

  /** Returns false if somebody uses the step, which then stays. */
  async remove(modelId: string, step: number): Promise<boolean> {
    const { modelTable, bases, workspace } = this.#context;
    const baseModel = (await modelTable.get(modelId))?.baseModel;
    // nothing is awaited in between: whoever takes a lease now finds no row any more (Policies.hold)
    if (this.#policies.inUse(modelId, step)) return false;
    const folder = await workspace.makingRoom(() => modelTable.deleteStep(modelId, step));
    if (folder === null) return true;
    await this.#policies.unload(modelId, folder, baseModel === undefined ? null : bases.get(baseModel));
    workspace.removeStep(modelId, folder);
    return true;
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
