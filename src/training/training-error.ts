// What training refuses to do, and why, as facts. The API maps each code to an error of the wire
// (api/training/routes.ts). A job that fails this way keeps the message.

/** The facts of each error, by its code. */
export interface TrainingFaults {
  model_exists: { model: string };
  name_taken: { name: string };
  unknown_base_model: { baseModel: string | undefined; known: readonly string[] };
  fork_changes_base_model: { baseModel: string };
  base_model_changed: { baseModel: string };
  base_model_gone: { baseModel: string; model: string };
  unknown_model: { id: string };
  unknown_step: { step: number | "latest" };
  damaged_step: { step: number };
  model_busy: object;
  job_does_not_stop: { id: string };
  too_many_metrics: { step: number; limit: number };
  unknown_job: { id: string };
  unknown_event: { id: string };
  record_expired: { id: string };
  no_token_numbers: { id: string };
  unknown_trajectory: { group: number; trajectory: number };
  idempotency_key_reused: object;
  unknown_run: { id: string };
  unknown_operation: { id: string };
  unknown_checkpoint: { id: string };
  no_result: { status: string };
  run_differs: { name: string };
  run_closed: { id: string };
  rank_differs: { rank: number; wanted: number };
  request_id_reused: { requestId: string };
  out_of_sequence: { expected: number; got: number };
  too_many_open_jobs: { limit: number };
  too_many_bytes: { used: number; more: number; limit: number };
  too_many_notes: { limit: number };
  storage_full: object;
  no_kl_reference: { step: number };
  learning_rate_overflow: { sequences: number; rate: number; learningRate: number; power: number };
  rank_too_large: { model: string; rank: number; limit: number };
  no_adapter_slot: { passing: boolean };
  trainer_failed: { reason: string };
  no_runs: object;
}

export type TrainingErrorCode = keyof TrainingFaults;

const MESSAGES: { [Code in TrainingErrorCode]: (facts: TrainingFaults[Code]) => string } = {
  model_exists: ({ model }) => `A model ${model} exists already; choose another name.`,
  name_taken: ({ name }) => `${name} is the name of a served model; choose another one.`,
  unknown_base_model: ({ baseModel, known }) =>
    known.length > 0
      ? `The base model ${baseModel} is not here; known: ${known.join(", ")}.`
      : "This server trains no model: the weights of the served one are not on its machine, or adapters are off.",
  fork_changes_base_model: ({ baseModel }) => `A fork keeps the base model of its source, ${baseModel}.`,
  base_model_changed: ({ baseModel }) =>
    `The files of the base model ${baseModel} changed since the server started, or are gone; restart the server.`,
  base_model_gone: ({ baseModel, model }) => `The base model ${baseModel} of ${model} is not served any more.`,
  unknown_model: ({ id }) => `There is no model ${id}.`,
  unknown_step: ({ step }) => `The model has no step ${step}.`,
  damaged_step: ({ step }) => `The files of step ${step} are damaged.`,
  model_busy: () => "The model has open training jobs; wait for them or cancel them first.",
  job_does_not_stop: ({ id }) =>
    `The training job ${id} runs on another server and has not stopped yet; try again in a minute.`,
  too_many_metrics: ({ step, limit }) => `Step ${step} would have more than ${limit} metrics.`,
  unknown_job: ({ id }) => `There is no training job ${id}.`,
  record_expired: ({ id }) =>
    `The record of job ${id} is gone: --keep-trajectories bounds what is kept, and for how long.`,
  no_token_numbers: ({ id }) =>
    `Job ${id} has no numbers per token here: it has not completed, its trainer kept none, or this trajectory was not trained.`,
  unknown_trajectory: ({ group, trajectory }) => `The job has no trajectory ${trajectory} in group ${group}.`,
  unknown_event: ({ id }) => `${id} is not an event of this job.`,
  idempotency_key_reused: () => "This Idempotency-Key belongs to a job with another body.",
  unknown_run: ({ id }) => `There is no training run ${id}.`,
  unknown_operation: ({ id }) => `The run has no operation ${id}.`,
  unknown_checkpoint: ({ id }) => `There is no checkpoint ${id}; its form is RUN_ID@VERSION.`,
  no_result: ({ status }) => `The operation has no result: it is ${status}, or its result was released.`,
  run_differs: ({ name }) => `The run ${name} exists with another spec; choose another run_name.`,
  run_closed: ({ id }) => `The run ${id} is closed; resolve it again to continue it.`,
  rank_differs: ({ rank, wanted }) => `The checkpoint has LoRA rank ${rank}, the run has ${wanted}.`,
  request_id_reused: ({ requestId }) => `The request_id ${requestId} belongs to a request with another body.`,
  out_of_sequence: ({ expected, got }) => `The next sequence_id of this run is ${expected}, not ${got}.`,
  too_many_open_jobs: ({ limit }) => `At most ${limit} jobs may be waiting or running at once.`,
  too_many_bytes: ({ used, more, limit }) =>
    `This needs ${more} bytes, and the workspace uses ${used} of ${limit}: delete checkpoints or models, or let jobs finish.`,
  too_many_notes: ({ limit }) => `The workspace has ${limit} notes, as many as it may: empty one, or delete a model.`,
  storage_full: () => "The server's disk is full.",
  no_kl_reference: ({ step }) => `The reference of the KL penalty, step ${step}, does not exist.`,
  learning_rate_overflow: ({ sequences, rate, learningRate, power }) =>
    `The learning rate of a gradient step with ${sequences} sequences would be ${rate}; lower learning_rate ` +
    `(${learningRate}) or num_trajectories_learning_rate_multiplier_power (${power}).`,
  rank_too_large: ({ model, rank, limit }) =>
    `The adapters of ${model} have rank ${rank}, more than this server serves (--max-lora-rank ${limit}).`,
  no_adapter_slot: ({ passing }) =>
    `Every adapter slot is in use, ${passing ? "some by running requests" : "by adapters that the operator loaded"}.`,
  no_runs: () =>
    "The torch trainer runs training jobs only; training runs need a server with --trainer onnx, or send jobs.",
  trainer_failed: ({ reason }) => `The trainer cannot train this model: ${reason}.`,
};

export class TrainingError<Code extends TrainingErrorCode = TrainingErrorCode> extends Error {
  readonly code: Code;
  readonly facts: TrainingFaults[Code];

  constructor(code: Code, facts: TrainingFaults[Code], cause?: unknown) {
    super(MESSAGES[code](facts), cause === undefined ? undefined : { cause });
    this.name = "TrainingError";
    this.code = code;
    this.facts = facts;
  }
}
