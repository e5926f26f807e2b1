// What the next step of a model will take on disk, at most: set aside before anybody makes it.

import type { ModelRecord } from "../../store/tables/models.ts";
import type { TrainingContext } from "../context.ts";

/** In bytes. The newest step counts too, because a trainer may write more than the values that we know of. */
export async function expectedStepBytes(
  { modelTable, bases }: Pick<TrainingContext, "modelTable" | "bases">,
  model: Pick<ModelRecord, "id" | "baseModel" | "loraRank">,
): Promise<number> {
  const base = bases.get(model.baseModel);
  const newest = (await modelTable.newestStep(model.id))?.bytes ?? 0;
  return Math.max(newest, base ? bases.sizes(base, model.loraRank).step : 0);
}
