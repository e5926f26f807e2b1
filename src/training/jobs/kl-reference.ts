// Which step the KL penalty of a job compares with. Asked when a job is submitted or previewed, so that what it would
// refuse is refused there, and again when it starts.

import type { ModelTable } from "../../store/model-table.ts";
import type { RlConfig } from "../config.ts";
import { TrainingError } from "../training-error.ts";

/**
 * null = no penalty; 0 is the base model itself, in forks too. `currentStep`: what the job trains from, which jobs before
 * it may still have to make. Throws when the step does not exist.
 */
export function klReferenceStep(
  config: RlConfig,
  modelId: string,
  currentStep: number,
  modelTable: ModelTable,
): number | null {
  if (config.loss.klPenaltyCoef <= 0) return null;
  const { klPenaltyReferenceStep: fixed, klPenaltyStepLag: lag } = config;
  const step = fixed ?? (lag === null ? 0 : stepsAgo(currentStep - lag, modelId, modelTable));
  if (step === 0 || modelTable.step(modelId, step) !== null) return step;
  const newest = modelTable.newestStep(modelId)?.step ?? 0;
  if (step > newest && step <= currentStep) return step;
  throw new TrainingError({ code: "no_kl_reference", step });
}

/** A fork has no steps before its first, and steps are deleted: then the next one that there is. */
function stepsAgo(wanted: number, modelId: string, modelTable: ModelTable): number {
  return wanted <= 0 ? 0 : (modelTable.firstStepFrom(modelId, wanted) ?? wanted);
}
