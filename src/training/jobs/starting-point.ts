// Where an attempt starts: the model, the base model it runs on and the step it continues.

import { join } from "node:path";
import { DISK_FULL } from "../../errors/faults.ts";
import type { JobRecord } from "../../store/tables/jobs.ts";
import type { ModelRecord } from "../../store/tables/models.ts";
import type { BaseModel } from "../base-models.ts";
import type { TrainingContext } from "../context.ts";
import { OPTIMIZER_FILE, type TaskModel } from "../contract.ts";
import { hasFile } from "../files/shared-files.ts";
import { assertServable } from "../policies.ts";

export interface StartingPoint {
  model: ModelRecord;
  base: BaseModel;
  /** The step that it continues. */
  from: number;
}

/** Throws with a message for the user if the job cannot run now. */
export async function startingPoint(
  job: JobRecord,
  { modelTable, bases, workspace }: TrainingContext,
): Promise<StartingPoint> {
  // otherwise its events and files take the room needed to record its end
  if (!workspace.keepReserve()) throw new Error(DISK_FULL);
  const model = await modelTable.get(job.modelId);
  if (!model) throw new Error("its model was deleted");
  const base = bases.get(model.baseModel);
  if (!base) throw new Error(`the base model ${model.baseModel} is not on this server any more`);
  bases.assertUnchanged(base);
  assertServable(model, base);
  const newest = await modelTable.newestStep(model.id);
  if (!newest) throw new Error("its model was deleted");
  return { model, base, from: newest.step };
}

/** `adapter`: the folder of the step that it continues. */
export function taskModel({ base }: StartingPoint, adapter: string, { settings }: TrainingContext): TaskModel {
  return {
    baseModel: base.folder,
    weights: base.weights,
    positionsPerBlock: base.engine.info.positionsPerBlock,
    context: base.engine.info.maxModelLen,
    adapter,
    threads: settings.threads,
    activationBytes: settings.activationBytes,
  };
}

/** The optimizer state of a step, if it has one. */
export function optimizerStateIn(stepFolder: string): string | null {
  const file = join(stepFolder, OPTIMIZER_FILE);
  return hasFile(file) ? file : null;
}
