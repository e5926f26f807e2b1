// Converts the requests of runs to what training understands, and refuses what it cannot do.
import type { Static } from "typebox";
import type { JobRecord } from "../../../store/tables/jobs.ts";
import type { NamedLoss } from "../../../training/gradient/algorithms.ts";
import {
  type CheckpointId,
  type Command,
  type OptimStepOutcome,
  operationOf,
  type PassCommand,
  type PassOutcome,
  type PublicationOutcome,
} from "../../../training/runs/operation.ts";
import type { NewRun, RunView } from "../../../training/runs/runs.ts";
import type { Loc, Violations } from "../../schema/scalars.ts";
import { invalid } from "../validation.ts";
import type { LoadStateBody, OptimStepBody, PassBody, PublishBody, ResolveBody } from "./run.schema.ts";

const MODULES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];

/** Names for several maps: PEFT's, those of checkpoints with fused maps, and Megatron's. */
const JOINED: Readonly<Record<string, readonly string[]>> = {
  "all-linear": MODULES,
  linear_qkv: ["q_proj", "k_proj", "v_proj"],
  linear_proj: ["o_proj"],
  linear_fc1: ["gate_proj", "up_proj"],
  linear_fc2: ["down_proj"],
  qkv_proj: ["q_proj", "k_proj", "v_proj"],
  gate_up_proj: ["gate_proj", "up_proj"],
  c_attn: ["q_proj", "k_proj", "v_proj"],
  c_fc: ["gate_proj", "up_proj"],
  c_proj: ["o_proj", "down_proj"],
};

const CHECKPOINT_ID = /^([0-9a-fA-F-]{36})@(\d{1,9})$/;

const LOSSES = ["cross_entropy", "importance_sampling", "cispo"];

export function runFrom(body: Static<typeof ResolveBody>, owner: string, entity: string): NewRun {
  const { base_model, lora_rank, lora_target_modules } = body.spec;
  const named = new Set(lora_target_modules.flatMap((name) => JOINED[name] ?? [name]));
  if (named.size !== MODULES.length || !MODULES.every((name) => named.has(name))) {
    const message = `Value error, this server trains all linear layers; send ${MODULES.join(", ")}`;
    throw invalid(["body", "spec", "lora_target_modules"], "value_error", message);
  }
  const seed = body.spec.seed ?? null;
  // in a fixed order, so that equal specs are equal texts
  const spec = { base_model, dtype: body.spec.dtype ?? "bfloat16", lora_rank, lora_target_modules, seed };
  const from = body.initial_state;
  return {
    ...{ owner, entity, requestId: body.request_id, name: body.run_name ?? null, seed },
    ...{ baseModel: base_model, loraRank: lora_rank, spec: JSON.stringify(spec) },
    from: from
      ? {
          ...checkpointFrom(from.source, ["body", "initial_state", "source"]),
          withOptimizer: from.restore_optimizer ?? false,
        }
      : null,
  };
}

export function optimStepFrom({ optimizer }: Static<typeof OptimStepBody>): Command {
  const clip = optimizer.grad_clip_norm ?? 0.1;
  return {
    kind: "optim_step",
    optimizer: {
      learningRate: optimizer.learning_rate,
      beta1: optimizer.beta1 ?? 0.9,
      beta2: optimizer.beta2 ?? 0.99,
      epsilon: optimizer.eps ?? 1e-13,
      weightDecay: optimizer.weight_decay ?? 0.1,
      maxGradNorm: clip === 0 ? Number.MAX_VALUE : clip,
    },
  };
}

export function publicationFrom({ publication }: Static<typeof PublishBody>): Command {
  return { kind: "save_weights_for_sampler", target: publication.target, alias: publication.model_alias };
}

export function loadStateFrom({ source, restore_optimizer }: Static<typeof LoadStateBody>): Command {
  const checkpoint = checkpointFrom(source, ["body", "source"]);
  return { kind: "load_state", source: checkpoint, withOptimizer: restore_optimizer ?? false };
}

type WirePass = Static<typeof PassBody>;

/** Returns undefined and adds to `issues` if the pass cannot be run here. */
export function passFrom(
  kind: PassCommand["kind"],
  body: WirePass,
  matrices: PassCommand["matrices"],
  issues: Violations,
): PassCommand | undefined {
  const refuse = (loc: Loc, reason: string) => issues.add(["body", ...loc], "value_error", `Value error, ${reason}`);
  if (body.batch.routes?.length) refuse(["batch", "routes"], "no model here has experts to route to");
  if (body.retain_packed_input) refuse(["retain_packed_input"], "packed inputs are not kept; send the batch again");
  const loss = lossFrom(body.loss);
  if (!loss) refuse(["loss", "name"], `use ${LOSSES.join(", ")}`);
  if (loss?.name === "cispo" && loss.clipLow > loss.clipHigh) {
    refuse(["loss", "clip_low_threshold"], "must not exceed clip_high_threshold");
  }
  if (!loss || issues.any) return undefined;
  return {
    ...{ kind, loss, matrices },
    wantsLogprobs: body.return_token_logprobs ?? true,
    wantsTokenIds: body.collect_packing_shapes ?? false,
  };
}

function lossFrom({ name, clip_low_threshold, clip_high_threshold }: WirePass["loss"]): NamedLoss | null {
  if (name === "cross_entropy" || name === "importance_sampling") return { name };
  if (name !== "cispo") return null;
  return { name, clipLow: clip_low_threshold ?? 0, clipHigh: clip_high_threshold ?? 4 };
}

function checkpointFrom(
  { kind, checkpoint_id }: { kind: string; checkpoint_id?: string | null },
  loc: Loc,
): CheckpointId {
  if (kind !== "service_checkpoint") {
    const message = "Value error, this server has no W&B artifacts; use a service_checkpoint, RUN_ID@VERSION";
    throw invalid([...loc, "kind"], "value_error", message);
  }
  const parts = CHECKPOINT_ID.exec(checkpoint_id ?? "");
  if (!parts) throw invalid([...loc, "checkpoint_id"], "value_error", "Value error, its form is RUN_ID@VERSION");
  return { modelId: parts[1]!.toLowerCase(), step: Number(parts[2]) };
}

// Training runs, operations and results as OpenPipe ART's native client reads them. The client refuses fields that it
// does not know.

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
