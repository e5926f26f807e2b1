// Requests and replies of the routes for training runs, in the form of OpenPipe ART's native client. The same schemas
// read requests and generate the OpenAPI document.

import { Type } from "typebox";
import { OPERATION_KINDS } from "../../../store/tables/jobs.ts";
import { AnyObject, Moment, mustBeAbsent, nullable, orNull, Uuid } from "../../schema/body.ts";
import { Name } from "../training.schema.ts";
import { TokenMatrixBody } from "./token-matrix.ts";

/** Any text that databases can hold: PostgreSQL has none with U+0000. */
const Id = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: String.raw`^[^\u0000]*$`,
  description: "1 to 255 characters without U+0000",
});

const CheckpointSource = Type.Object({
  kind: Type.Enum(["service_checkpoint", "wandb_artifact"], { description: "Only service_checkpoint is known here." }),
  checkpoint_id: orNull(Type.String(), { description: "RUN_ID@VERSION. Steps of trainable models work too." }),
});

export const ResolveBody = Type.Object(
  {
    request_id: Id,
    run_name: orNull(Id, { description: "Names the run, to find it again." }),
    spec: Type.Object({
      base_model: Type.String(),
      dtype: orNull(Type.Enum(["bfloat16"]), { description: "Accepted. Adapters are trained in float32." }),
      lora_rank: Type.Integer({ minimum: 1, maximum: 1024 }),
      lora_target_modules: Type.Array(Type.String(), {
        minItems: 1,
        maxItems: 32,
        description: "Must name all linear layers.",
      }),
      seed: orNull(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    }),
    initial_state: orNull(
      Type.Object({ source: CheckpointSource, restore_optimizer: orNull(Type.Boolean(), { default: false }) }),
      { description: "The checkpoint that a new run starts from." },
    ),
  },
  { title: "ResolveTrainingRun" },
);

const command = { request_id: Id, sequence_id: Type.Integer({ minimum: 0 }) };

export const PassBody = Type.Object(
  {
    ...command,
    batch: Type.Object({
      kind: Type.Enum(["token_matrix"]),
      matrices: Type.Array(TokenMatrixBody),
      routes: orNull(Type.Array(Type.Unknown()), {
        description: "Must be empty: no model here has experts to route to.",
      }),
    }),
    loss: Type.Object({
      name: Type.String({ description: "cross_entropy, importance_sampling or cispo." }),
      normalize_advantages: orNull(Type.Boolean(), { description: "Accepted. Advantages are used as they are sent." }),
      clip_low_threshold: orNull(Type.Number(), { default: 0, description: "cispo: lowest importance ratio." }),
      clip_high_threshold: orNull(Type.Number(), { default: 4, description: "cispo: highest importance ratio." }),
    }),
    collect_packing_shapes: orNull(Type.Boolean(), { default: false }),
    retain_packed_input: orNull(Type.Boolean(), { description: "Must be false: packed inputs are not kept." }),
    return_token_logprobs: orNull(Type.Boolean(), { default: true }),
  },
  { title: "TrainingPass" },
);

const nonNegative = (defaultValue: number) => orNull(Type.Number({ minimum: 0 }), { default: defaultValue });
const decay = (defaultValue: number) =>
  orNull(Type.Number({ minimum: 0, maximum: 1 - Number.EPSILON }), { default: defaultValue });

export const OptimStepBody = Type.Object(
  {
    ...command,
    optimizer: Type.Object({
      learning_rate: Type.Number({ minimum: 0 }),
      beta1: decay(0.9),
      beta2: decay(0.99),
      eps: orNull(Type.Number({ exclusiveMinimum: 0 }), { default: 1e-13 }),
      weight_decay: nonNegative(0.1),
      grad_clip_norm: orNull(Type.Number({ minimum: 0 }), { default: 0.1, description: "0 clips nothing." }),
    }),
  },
  { title: "OptimStep" },
);

const saved = {
  ...command,
  checkpoint_name: orNull(Id, { description: "Accepted. A checkpoint is known by its id." }),
  ttl_seconds: orNull(Type.Integer({ minimum: 1 }), { description: "Accepted. Steps go as --max-steps says." }),
};

export const PublishBody = Type.Object(
  {
    ...saved,
    publication: Type.Object({ target: Type.Enum(["active", "saved_generation"]), model_alias: Name }),
  },
  { title: "SaveWeightsForSampler" },
);

export const SaveStateBody = Type.Object({ ...saved, overwrite: orNull(Type.Boolean()) }, { title: "SaveState" });

export const LoadStateBody = Type.Object(
  {
    ...command,
    source: CheckpointSource,
    restore_optimizer: orNull(Type.Boolean(), { default: false }),
    checkpoint: mustBeAbsent("name the checkpoint in source"),
  },
  { title: "LoadState" },
);

export const ReleaseBody = Type.Object({ request_id: Id }, { title: "ReleaseResult" });

export const ReleasedBody = Type.Object(
  { operation_id: Uuid, request_id: Id, released: Type.Literal(true) },
  { title: "ReleasedResult" },
);

export const ResultBody = Type.Object(
  { operation_id: Uuid, kind: Type.Enum([...OPERATION_KINDS]), metrics: Type.Record(Type.String(), Type.Number()) },
  { title: "OperationResult", additionalProperties: true, description: "Its kind says which other members." },
);

export const RunBody = Type.Object(
  {
    run_id: Uuid,
    run_name: nullable(Type.String()),
    spec: AnyObject,
    status: Type.String({ description: "open, closing or closed." }),
    next_sequence_id: Type.Integer(),
    projected_learner_version: Type.Integer({ description: "The version after all accepted operations." }),
    committed_learner_version: Type.Integer(),
  },
  { title: "TrainingRun" },
);

export const OperationBody = Type.Object(
  {
    operation_id: Uuid,
    run_id: Uuid,
    request_id: Type.String(),
    sequence_id: Type.Integer(),
    kind: Type.Enum([...OPERATION_KINDS]),
    status: Type.String({ description: "admitted, running, succeeded, failed or cancelled." }),
    learner_parent_version: Type.Integer(),
    reserved_output_learner_version: nullable(Type.Integer()),
    admitted_at: Moment,
    started_at: nullable(Moment),
    ended_at: nullable(Moment),
    cancel_requested: Type.Boolean(),
    latest_event_cursor: Type.Integer(),
    result_summary: Type.Null(),
    result_ref: nullable(AnyObject),
    error: nullable(Type.Object({ code: Type.String({ description: "Why it failed, in a sentence." }) })),
  },
  { title: "TrainingOperation" },
);
