// Finds the step that the KL penalty of a job compares with. It is looked up when a job is submitted or previewed, so
// that a missing step is reported at once, and again when the job starts.

import type { ModelTable } from "../../store/tables/models.ts";
import type { RlConfig } from "../config.ts";
import { TrainingError } from "../training-error.ts";

/**
 * Returns null without a penalty. Step 0 is the base model, in forks too. `currentStep`: the step that the job trains
 * from; earlier jobs may still have to make it. Throws when the reference does not exist.
 */
export async function klReferenceStep(
  config: RlConfig,
  modelId: string,
  currentStep: number,
  modelTable: ModelTable,
): Promise<number | null> {
  if (config.loss.klPenaltyCoef <= 0) return null;
  const { klPenaltyReferenceStep: fixed, klPenaltyStepLag: lag } = config;
  const step = fixed ?? (lag === null ? 0 : await stepsAgo(currentStep - lag, modelId, modelTable));
  if (step === 0 || (await modelTable.hasStep(modelId, step))) return step;
  const newest = (await modelTable.newestStep(modelId))?.step ?? 0;
  if (step > newest && step <= currentStep) return step;
  throw new TrainingError("no_kl_reference", { step });
}

/** The next existing step, where a step was deleted or is older than a fork. */
async function stepsAgo(wanted: number, modelId: string, modelTable: ModelTable): Promise<number> {
  return wanted <= 0 ? 0 : ((await modelTable.firstStepFrom(modelId, wanted)) ?? wanted);
}
