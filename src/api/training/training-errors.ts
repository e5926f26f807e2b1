// Maps training errors to wire errors.

import type { ErrorCode } from "../../errors/error-table.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { TrainingError, type TrainingErrorCode } from "../../training/training-error.ts";

/** The code in the error table, and the request field that the error is about. */
const WIRE: Readonly<Record<TrainingErrorCode, { code: ErrorCode; param?: string }>> = {
  model_exists: { code: "model_exists" },
  name_taken: { code: "name_taken", param: "name" },
  unknown_base_model: { code: "unknown_base_model", param: "base_model" },
  fork_changes_base_model: { code: "unknown_base_model", param: "base_model" },
  unknown_model: { code: "unknown_training_model", param: "model_id" },
  unknown_step: { code: "unknown_checkpoint" },
  damaged_step: { code: "damaged_checkpoint", param: "step" },
  model_busy: { code: "model_busy" },
  job_does_not_stop: { code: "model_busy" },
  too_many_metrics: { code: "invalid_training_request", param: "trajectory_groups" },
  unknown_job: { code: "unknown_training_job" },
  record_expired: { code: "record_expired" },
  no_token_numbers: { code: "no_token_numbers" },
  unknown_trajectory: { code: "unknown_training_job" },
  unknown_event: { code: "unknown_training_job", param: "after" },
  idempotency_key_reused: { code: "idempotency_key_reused" },
  unknown_run: { code: "unknown_training_run" },
  unknown_operation: { code: "unknown_training_run" },
  unknown_checkpoint: { code: "unknown_checkpoint" },
  no_result: { code: "unknown_training_run" },
  run_differs: { code: "run_conflict", param: "spec" },
  run_closed: { code: "run_conflict" },
  rank_differs: { code: "run_conflict", param: "source" },
  request_id_reused: { code: "run_conflict", param: "request_id" },
  out_of_sequence: { code: "run_conflict", param: "sequence_id" },
  too_many_open_jobs: { code: "quota_exceeded" },
  too_many_bytes: { code: "quota_exceeded" },
  storage_full: { code: "storage_full" },
  no_kl_reference: { code: "invalid_training_request", param: "experimental_config" },
  learning_rate_overflow: { code: "invalid_training_request", param: "experimental_config" },
  base_model_changed: { code: "unknown_base_model", param: "base_model" },
  base_model_gone: { code: "model_not_found", param: "model" },
  rank_too_large: { code: "adapter_rank_too_large", param: "model_id" },
  no_adapter_slot: { code: "no_adapter_slot" },
  trainer_failed: { code: "trainer_failed" },
  no_runs: { code: "not_supported" },
};

/** The wire error for a training error. Returns other errors unchanged. */
export function fromTraining(thrown: unknown): unknown {
  return thrown instanceof TrainingError ? wireError(thrown) : thrown;
}

/** The same for a request to a policy, where the field is `model`. */
export function fromPolicy(thrown: unknown): unknown {
  return thrown instanceof TrainingError ? wireError(thrown, "model") : thrown;
}

function wireError(cause: TrainingError, field?: string): ServiceError {
  const { code, param } = WIRE[cause.code];
  const hint =
    code === "model_exists" ? cause.message.replace(/\.$/, " or send return_existing: true.") : cause.message;
  return new ServiceError(code, hint, { param: param === undefined ? null : (field ?? param), cause });
}
