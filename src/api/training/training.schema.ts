// Requests and replies of the training routes. The same schemas read requests and generate the OpenAPI document.
// trajectory.schema.ts has the training data, job-options.ts the options of a job.

import { type Static, type TObject, Type } from "typebox";
import { JOB_STATUSES } from "../../store/tables/jobs.ts";
import { AnyObject, ErrorBody, Moment, mustBeAbsent, nullable, orNull, Uuid } from "../schema/body.ts";
import { listOf, pageOf, wholeListOf } from "../schema/list.ts";
import { RlOptions, SftOptions } from "./job-options.ts";
import { ExampleBody, TrajectoryGroupBody } from "./trajectory.schema.ts";

const Numbers = Type.Record(Type.String(), Type.Number());

export const TrainingErrorBody = Type.Object(
  {
    ...ErrorBody.properties,
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
    inference_name: Type.String({ description: "The name that selects the newest step in chat completions." }),
    latest_step: nullable(Type.Integer()),
    lora_rank: Type.Integer(),
    lora_alpha: Type.Number(),
    bytes: Type.Integer({ description: "Of all its steps." }),
    open_jobs: Type.Integer({ description: "Jobs and operations that wait or run." }),
    recent_rewards: Type.Array(Type.Number(), { description: "train/reward of up to 30 steps, the newest last." }),
    forked_from: nullable(Type.Object({ model_id: Uuid, step: Type.Integer() })),
    last_job: nullable(
      Type.Object({
        id: Uuid,
        status: Type.Enum([...JOB_STATUSES]),
        progress: nullable(Type.Number()),
        updated_at: Moment,
        error_message: nullable(Type.String()),
      }),
    ),
    workspace: Type.Optional(Type.String({ description: "Name of its workspace; only for admins." })),
  },
  { title: "TrainableModel" },
);
export const TrainableModelList = listOf(TrainableModelBody, "TrainableModelList");

export const ServerStatusBody = Type.Object(
  {
    id: Type.String(),
    role: Type.Enum(["all", "api", "worker"]),
    version: Type.String(),
    alive: Type.Boolean({ description: "It was heard of within the last 30 seconds." }),
    address: Type.String(),
    silent_seconds: Type.Number(),
    models: Type.Array(Type.String()),
    replicas: Type.Array(Type.Object({ name: Type.String(), state: Type.String(), in_flight: Type.Integer() })),
    running_jobs: Type.Array(
      Type.Object({ id: Uuid, model_id: Uuid, kind: Type.String(), progress: nullable(Type.Number()) }),
    ),
  },
  { title: "ServerStatus" },
);
export const ServerList = wholeListOf(ServerStatusBody, "ServerList");

/** Part of inference names and paths. The database ends text at NUL and cannot hold half a surrogate pair. */
export const Name = Type.String({
  pattern: String.raw`^(?!\.{1,2}$)[^\s/:@\\\p{Cc}\p{Cs}]{1,128}$`,
  description: "1 to 128 characters without spaces, control characters, '/', '\\', ':' and '@'; not '.' or '..'",
});

export const NewModelBody = Type.Object(
  {
    entity: orNull(Name, { description: "Default: the name of the workspace." }),
    project: Name,
    name: Name,
    base_model: orNull(Type.String(), { description: "Required unless `from` is given." }),
    return_existing: orNull(Type.Boolean(), {
      default: false,
      description: "Return the existing model of this name, if there is one.",
    }),
    from: orNull(Type.Object({ model_id: Uuid, step: orNull(Type.Integer({ minimum: 0 })) }), {
      description: "Fork: start from a step of another model, at the same step number.",
    }),
  },
  { title: "NewTrainableModel" },
);

export const CheckpointBody = Type.Object(
  {
    id: Uuid,
    step: Type.Integer(),
    metrics: Numbers,
    created_at: Moment,
    job_id: nullable(Uuid),
    bytes: Type.Integer(),
    digest: nullable(Type.String({ description: "SHA-256 over the step's files: equal steps have equal digests." })),
    origin: Type.Enum(["training", "registration", "fork", "rollback"]),
    loaded: Type.Boolean({ description: "Whether the engine has its adapter loaded." }),
  },
  { title: "Checkpoint" },
);
export const CheckpointList = listOf(CheckpointBody, "CheckpointList");

export const DeletedModel = Type.Object(
  { model_id: Uuid, deleted_checkpoints: Type.Integer(), deleted_run: Type.Literal(true) },
  { title: "DeletedModel" },
);

export const DeletedCheckpoints = Type.Object(
  {
    deleted_count: Type.Integer(),
    not_found_steps: Type.Array(Type.Integer()),
    kept_steps: Type.Array(Type.Integer(), { description: "The newest step and steps in use." }),
  },
  { title: "DeletedCheckpoints" },
);

export const RollbackBody = Type.Object({ step: Type.Integer({ minimum: 0 }) }, { title: "Rollback" });
export const StepsBody = Type.Object({ steps: Type.Array(Type.Integer()) }, { title: "DeleteCheckpoints" });
export const LogBody = Type.Object(
  { split: Type.String({ maxLength: 128 }), trajectory_groups: Type.Array(TrajectoryGroupBody) },
  { title: "LogTrajectories" },
);

export const NewJobBody = Type.Object(
  {
    model_id: Uuid,
    trajectory_groups: Type.Array(TrajectoryGroupBody),
    experimental_config: orNull(RlOptions),
    dry_run: orNull(Type.Boolean(), { description: "Show tokens, masks, advantages and verdicts; train nothing." }),
  },
  { title: "NewTrainingJob" },
);

const fromJob = {
  from_job: Type.String({ format: "uuid", description: "A job whose kept data is used again instead of new data." }),
  model_id: orNull(Uuid, { description: "Default: the model of that job." }),
  dry_run: orNull(Type.Boolean(), { description: "Show what training would see; train nothing." }),
};
const NewReward = Type.Object({
  group: Type.Integer({ minimum: 0 }),
  trajectory: Type.Integer({ minimum: 0 }),
  reward: Type.Number(),
});
export type NewReward = Static<typeof NewReward>;
export const JobAgainBody = Type.Object(
  {
    ...fromJob,
    config: orNull(RlOptions, { description: "Default: that of the job." }),
    rewards: orNull(Type.Array(NewReward), { description: "Rewards of some trajectories, instead of those sent." }),
  },
  { title: "TrainingJobAgain" },
);
export const SftJobAgainBody = Type.Object(
  { ...fromJob, config: orNull(SftOptions, { description: "Default: that of the job." }) },
  { title: "SftTrainingJobAgain" },
);

export const NewSftJobBody = Type.Object(
  {
    model_id: Uuid,
    training_data: Type.Array(ExampleBody),
    training_data_url: mustBeAbsent("this server fetches no URLs; send the examples inline as training_data"),
    config: orNull(SftOptions),
    dry_run: orNull(Type.Boolean(), { description: "Show tokens, masks and verdicts; train nothing." }),
  },
  { title: "NewSftTrainingJob" },
);

const verdict = {
  status: Type.String(),
  reason: nullable(Type.String({ description: "The verdict again; null for what was trained." })),
  message: nullable(Type.String()),
  num_tokens: Type.Integer(),
  num_trainable_tokens: Type.Integer(),
};
const ReportBody = Type.Object(
  {
    trajectories: Type.Optional(
      Type.Array(
        Type.Object({
          ...{ group: Type.Integer(), trajectory: Type.Integer(), ...verdict },
          ...{ reward: Type.Number(), advantage: Type.Number(), num_sequences: Type.Integer() },
        }),
      ),
    ),
    examples: Type.Optional(Type.Array(Type.Object({ example: Type.Integer(), ...verdict }))),
    totals: Numbers,
    usage: nullable(Type.Object({ tokens: Type.Integer(), seconds: Type.Number(), peak_bytes: Type.Integer() })),
  },
  { title: "TrainingReport" },
);

export const JobBody = Type.Object(
  {
    id: Uuid,
    model_id: Uuid,
    status: Type.Enum([...JOB_STATUSES]),
    progress: nullable(Type.Number()),
    error_message: nullable(Type.String()),
    training_start: nullable(Moment),
    training_end: nullable(Moment),
    created_at: Moment,
    updated_at: Moment,
    kind: Type.Enum(["rl", "sft"]),
    from_step: nullable(Type.Integer()),
    step: nullable(Type.Integer({ description: "The step that the job created." })),
    config: Type.Union([RlOptions, SftOptions], { description: "As the server understood it, with its defaults." }),
    attempts: Type.Integer({ description: "Number of starts." }),
    totals: nullable(
      Type.Object({
        groups: Type.Integer({ description: "0 in supervised jobs." }),
        trainable_groups: nullable(
          Type.Integer({ description: "Groups whose rewards differ; null for jobs of earlier versions." }),
        ),
        trajectories: Type.Integer({ description: "Or examples." }),
        trained: Type.Integer(),
        by_status: Type.Record(Type.String(), Type.Integer()),
        tokens: Type.Integer(),
        trainable_tokens: Type.Integer(),
      }),
    ),
    gradient_steps: nullable(Type.Object({ done: Type.Integer(), total: Type.Integer() })),
    report: Type.Optional(nullable(ReportBody)),
  },
  { title: "TrainingJob" },
);
export const JobList = listOf(JobBody, "TrainingJobList");

export const EventBody = Type.Object(
  {
    id: Uuid,
    type: Type.String({
      description: "training_started, gradient_step, training_warning, training_ended or training_failed.",
    }),
    data: AnyObject,
    created_at: Moment,
  },
  { title: "TrainingEvent" },
);
export const EventList = listOf(EventBody, "TrainingEventList");

export const PageQuery = pageOf(100, 20);
export const StepOrder = Type.Object({ order: orNull(Type.Enum(["asc", "desc"]), { default: "asc" }) });
export const ModelFilter = Type.Object({
  entity: orNull(Type.String()),
  project: orNull(Type.String()),
  name: orNull(Type.String()),
  base_model: orNull(Type.String()),
});
export const JobFilter = Type.Object({
  model_id: orNull(Type.String()),
  status: orNull(Type.Enum([...JOB_STATUSES])),
});

/** The query of a list: its page and any filters. */
export function listQuery(filter: TObject = Type.Object({})): TObject {
  return Type.Object({ ...PageQuery.properties, ...filter.properties });
}
