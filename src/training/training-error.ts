// What training refuses to do, and why, as facts. The API maps each code to an error of the wire
// (api/training/training-errors.ts). A job that fails this way keeps the message.

export type TrainingFault =
  | { code: "model_exists"; model: string }
  | { code: "name_taken"; name: string }
  | { code: "unknown_base_model"; baseModel: string | undefined; known: readonly string[] }
  | { code: "fork_changes_base_model"; baseModel: string }
  | { code: "unknown_model"; id: string }
  | { code: "unknown_step"; step: number | "latest" }
  | { code: "damaged_step"; step: number }
  | { code: "model_busy" }
  | { code: "too_many_metrics"; step: number; limit: number }
  | { code: "unknown_job"; id: string }
  | { code: "unknown_event"; id: string }
  | { code: "idempotency_key_reused" }
  | { code: "too_many_open_jobs"; limit: number }
  | { code: "too_many_bytes"; bytes: number; limit: number }
  | { code: "storage_full" }
  | { code: "no_kl_reference"; step: number }
  | { code: "learning_rate_overflow"; sequences: number; rate: number; learningRate: number; power: number }
  | { code: "base_model_changed"; baseModel: string }
  | { code: "base_model_gone"; baseModel: string; model: string }
  | { code: "rank_too_large"; model: string; rank: number; limit: number }
  | { code: "no_adapter_slot"; passing: boolean };

export type TrainingErrorCode = TrainingFault["code"];

export class TrainingError extends Error {
  readonly fault: TrainingFault;

  constructor(fault: TrainingFault, cause?: unknown) {
    super(messageOf(fault), cause === undefined ? undefined : { cause });
    this.name = "TrainingError";
    this.fault = fault;
  }

  get code(): TrainingErrorCode {
    return this.fault.code;
  }
}

function messageOf(fault: TrainingFault): string {
  switch (fault.code) {
    case "model_exists":
      return `A model ${fault.model} exists already; choose another name.`;
    case "name_taken":
      return `${fault.name} is the name of a served model; choose another one.`;
    case "unknown_base_model":
      return `The base model ${fault.baseModel} is not here; known: ${fault.known.join(", ")}.`;
    case "fork_changes_base_model":
      return `A fork keeps the base model of its source, ${fault.baseModel}.`;
    case "unknown_model":
      return `There is no model ${fault.id}.`;
    case "unknown_step":
      return `The model has no step ${fault.step}.`;
    case "damaged_step":
      return `The files of step ${fault.step} are damaged.`;
    case "model_busy":
      return "The model has open training jobs; wait for them or cancel them first.";
    case "too_many_metrics":
      return `Step ${fault.step} would have more than ${fault.limit} metrics.`;
    case "unknown_job":
      return `There is no training job ${fault.id}.`;
    case "unknown_event":
      return `${fault.id} is not an event of this job.`;
    case "idempotency_key_reused":
      return "This Idempotency-Key belongs to a job with another body.";
    case "too_many_open_jobs":
      return `At most ${fault.limit} jobs may be waiting or running at once.`;
    case "too_many_bytes":
      return `Checkpoints use ${fault.bytes} of ${fault.limit} bytes; delete some before training on.`;
    case "storage_full":
      return "The server's disk is full.";
    case "no_kl_reference":
      return `The reference of the KL penalty, step ${fault.step}, does not exist.`;
    case "learning_rate_overflow": {
      const options = `learning_rate (${fault.learningRate}) or num_trajectories_learning_rate_multiplier_power (${fault.power})`;
      return `The learning rate of a gradient step with ${fault.sequences} sequences would be ${fault.rate}; lower ${options}.`;
    }
    case "base_model_changed":
      return `The files of the base model ${fault.baseModel} changed since the server started, or are gone; restart the server.`;
    case "base_model_gone":
      return `The base model ${fault.baseModel} of ${fault.model} is not served any more.`;
    case "rank_too_large": {
      const limit = `--max-lora-rank ${fault.limit}`;
      return `The adapters of ${fault.model} have rank ${fault.rank}, more than this server serves (${limit}).`;
    }
    case "no_adapter_slot":
      return `Every adapter slot is in use, ${fault.passing ? "some by running requests" : "by adapters that the operator loaded"}.`;
  }
}
