// Training runs, operations and results as OpenPipe ART's native client reads them. The client refuses fields that it
// does not know.

import type { JobRecord } from "../../../store/tables/jobs.ts";
import {
  type OptimStepOutcome,
  operationOf,
  type PassCommand,
  type PassOutcome,
  type PublicationOutcome,
} from "../../../training/runs/operation.ts";
import type { RunView } from "../../../training/runs/runs.ts";

const STATUSES = {
  PENDING: "admitted",
  RUNNING: "running",
  COMPLETED: "succeeded",
  FAILED: "failed",
  CANCELLED: "cancelled",
} as const;

/** Results stay until they are released or the run is deleted. The client needs a date. */
const NEVER = "9999-12-31T23:59:59Z";

export function presentRun({ run, status, nextSequenceId, projectedVersion, committedVersion }: RunView) {
  return {
    run_id: run.modelId,
    run_name: run.name,
    spec: JSON.parse(run.spec) as object,
    status,
    next_sequence_id: nextSequenceId,
    projected_learner_version: projectedVersion,
    committed_learner_version: committedVersion,
  };
}

export function presentOperation(job: JobRecord) {
  const { requestId, sequenceId, parentVersion, outputVersion } = operationOf(job);
  return {
    operation_id: job.id,
    run_id: job.modelId,
    request_id: requestId,
    sequence_id: sequenceId,
    kind: job.kind,
    status: STATUSES[job.status],
    learner_parent_version: parentVersion,
    reserved_output_learner_version: outputVersion,
    admitted_at: job.createdAt,
    started_at: job.trainingStart,
    ended_at: job.trainingEnd,
    cancel_requested: job.cancelRequested,
    latest_event_cursor: 1 + (job.trainingStart ? 1 : 0) + (job.trainingEnd ? 1 : 0),
    result_summary: null,
    result_ref:
      job.status === "COMPLETED" && job.report !== null
        ? {
            result_id: job.id,
            media_type: "application/json",
            size_bytes: Buffer.byteLength(job.report),
            expires_at: NEVER,
          }
        : null,
    error: job.errorMessage === null ? null : { code: job.errorMessage },
  };
}

/** `outcome`: JSON of what the operation stored. */
export function presentResult(job: JobRecord, outcome: string) {
  const { command, parentVersion, outputVersion } = operationOf(job);
  const head = { operation_id: job.id, kind: job.kind };
  const version = outputVersion ?? parentVersion;
  const checkpoint = { checkpoint_id: `${job.modelId}@${version}`, learner_version: version };
  switch (command.kind) {
    case "forward":
    case "forward_backward":
      return { ...head, ...presentPass(command, JSON.parse(outcome) as PassOutcome) };
    case "optim_step": {
      const { contributions, gradNorm, learningRate } = JSON.parse(outcome) as OptimStepOutcome;
      const metrics = { "loss/grad_norm": gradNorm, "loss/learning_rate": learningRate };
      return { ...head, metrics, contributing_operation_ids: contributions, checkpoint, learner_version: version };
    }
    case "save_weights_for_sampler": {
      const { generation } = JSON.parse(outcome) as PublicationOutcome;
      const names = { target: command.target, model_alias: command.alias, generation_id: generation };
      return { ...head, metrics: {}, ...names, learner_version: version, checkpoint };
    }
    case "save_state":
      return { ...head, metrics: {}, checkpoint, archive: null };
    case "load_state":
      return { ...head, metrics: {}, checkpoint, optimizer_restored: command.withOptimizer };
    default:
      return command satisfies never;
  }
}

function presentPass({ kind, loss, matrices }: PassCommand, outcome: PassOutcome) {
  const { activePositions, byPolicyVersion, rows, logprobs, tokenIds } = outcome;
  const mean = outcome.loss / Math.max(1, activePositions);
  return {
    metrics: { "loss/train": mean },
    // batches run without padding, in one sequence of rows
    packing: {
      packed_sequence_length: rows,
      packed_sequences: 1,
      target_packed_sequences: 1,
      logical_tokens: matrices.reduce((sum, { shape }) => sum + shape[0], 0),
      physical_tokens: rows,
      packed_capacity_tokens: rows,
      padding_tokens: 0,
    },
    token_logprobs: logprobs.map(({ id, shape, data }) => ({ matrix_id: id, shape, data })),
    group_shapes: tokenIds.map(({ id, ids }) => ({
      leaves: [{ matrix_id: id, token_ids: ids, shareable_length: ids.length }],
    })),
    ...(kind === "forward_backward" && {
      training: {
        accepted_trainable_tokens: activePositions,
        policy_token_counts:
          byPolicyVersion?.map(({ version, positions }) => ({
            policy_version: version,
            accepted_trainable_tokens: positions,
          })) ?? null,
      },
      loss: { contract_id: `${loss.name}_v1`, value: mean, reduction: "mean_active_token" },
      produced_gradient: true,
    }),
  };
}
