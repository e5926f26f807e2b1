// Which step the KL penalty of a job compares with. Asked when a job is submitted or previewed, so that what it would
// refuse is refused there, and again when it starts.

import { ServiceError } from "../../errors/service-error.ts";
import type { ModelTable } from "../../store/model-table.ts";
import type { RlConfig } from "../config.ts";

/**
 * null = no penalty; 0 is the base model itself, in forks too. `currentStep`: what the job trains from, which jobs before
 * it may still have to make. Throws when the step does not exist.
 */
export function klReferenceStep(
  config: RlConfig,
  modelId: string,
  currentStep: number,
  models: ModelTable,
): number | null {
  if (config.loss.klPenaltyCoef <= 0) return null;
  const { klPenaltyReferenceStep: fixed, klPenaltyStepLag: lag } = config;
  const step = fixed ?? (lag === null ? 0 : stepsAgo(currentStep - lag, modelId, models));
  if (step === 0 || models.step(modelId, step) !== null) return step;
  const newest = models.newestStep(modelId)?.step ?? 0;
  if (step > newest && step <= currentStep) return step;
  const message = `The reference of the KL penalty, step ${step}, does not exist.`;
  throw new ServiceError("invalid_training_request", message, { param: "experimental_config" });
}

/** A fork has no steps before its first, and steps are deleted: then the next one that there is. */
function stepsAgo(wanted: number, modelId: string, models: ModelTable): number {
  return wanted <= 0 ? 0 : (models.firstStepFrom(modelId, wanted) ?? wanted);
}
