// The training endpoints for the OpenAPI document. Bodies are read leniently by the *.wire.ts files; these schemas say what
// clients may send and what they get.

import { type TProperties, type TSchema, Type } from "typebox";
import { AnyObject, nullable, orNull } from "../request/schema-parts.ts";

const Uuid = Type.String({ format: "uuid" });
const Moment = Type.String({ format: "date-time" });
const Numbers = Type.Record(Type.String(), Type.Number());

const listOf = <S extends TSchema>(item: S, title: string) =>
  Type.Object(
    {
      object: Type.Literal("list"),
      data: Type.Array(item),
      first_id: Type.String(),
      last_id: Type.String(),
      has_more: Type.Boolean(),
    },
    { title },
  );

const TrainingErrorBody = Type.Object(
  {
    error: Type.Object({
      message: Type.String(),
      type: Type.String(),
      param: nullable(Type.String()),
      code: Type.Integer({ description: "The HTTP status." }),
    }),
    detail: Type.Union([
      Type.String(),
      Type.Array(
        Type.Object({
          loc: Type.Array(Type.Union([Type.String(), Type.Integer()]), {
            description: "Path of the value: body, trajectory_groups, group, trajectories, trajectory, …",
          }),
          msg: Type.String(),
          type: Type.String(),
        }),
      ),
    ]),
  },
  { title: "TrainingError" },
);

export const TrainableModelBody = Type.Object(
  {
    id: Uuid,
    entity: Type.String(),
    project: Type.String(),
    name: Type.String(),
    base_model: Type.String(),
    run_id: Type.Null(),
    created_at: Moment,
    inference_name: Type.String({ description: "Name of the newest step for chat completions." }),
  },
  { title: "TrainableModel" },
);
export const TrainableModelList = listOf(TrainableModelBody, "TrainableModelList");

export const NewModelBody = Type.Object(
  {
    entity: orNull(Type.String(), { description: "Default: the token's name." }),
    project: Type.String(),
    name: Type.String(),
    base_model: orNull(Type.String(), { description: "Required unless `from` is given." }),
    return_existing: orNull(Type.Boolean(), {
      default: false,
      description: "Return a model of this name if there is one.",
    }),
    from: orNull(Type.Object({ model_id: Uuid, step: orNull(Type.Integer({ minimum: 0 })) }), {
      description: "Fork: start from a step of another model, at the same step number.",
    }),
  },
  { title: "NewTrainableModel" },
);

export const CheckpointBody = Type.Object(
  { id: Uuid, step: Type.Integer(), metrics: Numbers, created_at: Moment },
  { title: "Checkpoint" },
);
export const CheckpointList = listOf(CheckpointBody, "CheckpointList");

const Trajectory = Type.Object(
  {
    messages_and_choices: Type.Array(AnyObject, {
      description: "Messages (with `role`) and choices as a chat completion returned them (with `message`).",
    }),
    tools: orNull(Type.Array(AnyObject)),
    additional_histories: orNull(Type.Array(AnyObject)),
    reward: orNull(Type.Number({ minimum: -1e100, maximum: 1e100 }), { default: 0 }),
    initial_policy_version: orNull(Type.Integer()),
    final_policy_version: orNull(Type.Integer()),
    metrics: orNull(Type.Record(Type.String(), Type.Union([Type.Number(), Type.Boolean()]))),
    metadata: orNull(AnyObject),
    logs: orNull(Type.Array(Type.String())),
    start_time: orNull(Moment),
  },
  { title: "Trajectory" },
);

const TrajectoryGroupBody = Type.Object(
  {
    trajectories: Type.Array(Trajectory),
    exceptions: orNull(Type.Array(AnyObject)),
    metrics: orNull(Type.Record(Type.String(), Type.Union([Type.Number(), Type.Boolean()]))),
  },
  { title: "TrajectoryGroup" },
);

export const RollbackBody = Type.Object({ step: Type.Integer({ minimum: 0 }) }, { title: "Rollback" });
export const StepsBody = Type.Object({ steps: Type.Array(Type.Integer()) }, { title: "DeleteCheckpoints" });
export const LogBody = Type.Object(
  { split: Type.String(), trajectory_groups: Type.Array(TrajectoryGroupBody) },
  { title: "LogTrajectories" },
);

const options: TProperties = {
  learning_rate: orNull(Type.Number(), { default: 5e-6 }),
  loss_fn: orNull(Type.Union([Type.Literal("cispo"), Type.Literal("ppo")]), { default: "cispo" }),
  ppo: orNull(Type.Boolean(), { default: false }),
  epsilon: orNull(Type.Number(), { description: "Default: 1 for cispo, 0.2 for ppo." }),
  epsilon_high: orNull(Type.Number(), { description: "Default: 4 for cispo, epsilon for ppo." }),
  importance_sampling_level: orNull(Type.String(), { description: "token, sequence, average or geometric_average." }),
  max_negative_advantage_importance_sampling_weight: orNull(Type.Number()),
  mask_prob_ratio: orNull(Type.Boolean(), { default: false }),
  alt_k2_tau: orNull(Type.Number(), { description: "Also known as kimi_k2_tau." }),
  advantage_balance: orNull(Type.Number({ minimum: -1, maximum: 1 }), { default: 0 }),
  scale_rewards: orNull(Type.Boolean(), { default: true, description: "Also known as normalize_advantages." }),
  precalculate_logprobs: orNull(Type.Boolean(), { default: false }),
  truncated_importance_sampling: orNull(Type.Number()),
  kl_penalty_coef: orNull(Type.Number({ minimum: 0 }), { default: 0 }),
  kl_penalty_reference_step: orNull(Type.Integer({ minimum: 0 })),
  kl_penalty_step_lag: orNull(Type.Integer({ minimum: 1 })),
  kl_penalty_source: orNull(Type.String(), { description: "current_learner or sample." }),
  allow_training_without_logprobs: orNull(Type.Boolean(), { default: false }),
  num_trajectories_learning_rate_multiplier_power: orNull(Type.Number(), { default: 0 }),
  scale_learning_rate_by_reward_std_dev: orNull(Type.Boolean(), { default: false }),
  packed_sequence_length: orNull(Type.Integer({ minimum: 1 })),
  logprob_calculation_chunk_size: orNull(Type.Integer({ minimum: 1 }), { default: 1024 }),
  grad_accumulation_sequences: orNull(Type.Union([Type.Integer({ minimum: 1 }), Type.Literal("all")]), { default: 1 }),
  max_steps_off_policy: orNull(Type.Integer({ minimum: 0 })),
  weight_decay: orNull(Type.Number({ minimum: 0 }), { default: 0.1 }),
  max_grad_norm: orNull(Type.Number({ exclusiveMinimum: 0 }), { default: 0.1 }),
  art_exact_masking: orNull(Type.Boolean(), { default: false }),
  seed: orNull(Type.Integer({ minimum: 0 }), { default: 3407 }),
};

export const NewJobBody = Type.Object(
  {
    model_id: Uuid,
    trajectory_groups: Type.Array(TrajectoryGroupBody),
    experimental_config: orNull(Type.Object(options, { title: "ExperimentalTrainingConfig" })),
    dry_run: orNull(Type.Boolean(), { description: "Show tokens, masks, advantages and verdicts; train nothing." }),
  },
  { title: "NewTrainingJob" },
);

export const NewSftJobBody = Type.Object(
  {
    model_id: Uuid,
    training_data: Type.Array(Type.Object({ messages: Type.Array(AnyObject), tools: orNull(Type.Array(AnyObject)) })),
    config: orNull(
      Type.Object({
        batch_size: orNull(Type.Union([Type.Integer({ minimum: 1 }), Type.Literal("auto")])),
        learning_rate: orNull(Type.Union([Type.Number(), Type.Array(Type.Number())]), { default: 5e-5 }),
        assistant_turns: orNull(Type.String(), { default: "all", description: "all or last." }),
      }),
    ),
    dry_run: orNull(Type.Boolean(), { description: "Show tokens, masks and verdicts; train nothing." }),
  },
  { title: "NewSftTrainingJob" },
);

export const JobBody = Type.Object(
  {
    id: Uuid,
    model_id: Uuid,
    status: Type.String({ description: "PENDING, RUNNING, COMPLETED, FAILED or CANCELLED." }),
    progress: nullable(Type.Number()),
    error_message: nullable(Type.String()),
    training_start: nullable(Moment),
    training_end: nullable(Moment),
    created_at: Moment,
    updated_at: Moment,
    kind: Type.String({ description: "rl or sft." }),
    from_step: nullable(Type.Integer()),
    step: nullable(Type.Integer({ description: "The step it made." })),
    report: Type.Optional(nullable(AnyObject)),
  },
  { title: "TrainingJob" },
);
export const JobList = listOf(JobBody, "TrainingJobList");

const EventBody = Type.Object(
  {
    id: Uuid,
    type: Type.String({ description: "training_started, gradient_step, training_ended or training_failed." }),
    data: AnyObject,
    created_at: Moment,
  },
  { title: "TrainingEvent" },
);
export const EventList = listOf(EventBody, "TrainingEventList");

/** Options of a documented training route. */
export function documented(
  summary: string,
  schema: { body?: TSchema; response?: TSchema },
  access: "training" | "public" = "training",
) {
  return {
    config: { access },
    schema: {
      summary,
      tags: ["training"],
      ...(access === "public" ? { security: [] } : {}),
      ...(schema.body ? { body: schema.body } : {}),
      response: {
        ...(schema.response ? { 200: schema.response } : {}),
        ...(access === "public" ? {} : { 404: TrainingErrorBody, 422: TrainingErrorBody }),
      },
    },
  };
}
