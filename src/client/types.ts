// The JSON that this client sends and receives.

export interface TrainableModel {
  id: string;
  entity: string;
  project: string;
  name: string;
  base_model: string;
  /** Full name for inference. The newest step answers. */
  inference_name: string;
  latest_step: number | null;
  lora_rank: number;
  lora_alpha: number;
  /** Of all its steps. */
  bytes: number;
  open_jobs: number;
  /** Of up to 30 steps, the newest last. */
  recent_rewards: number[];
  forked_from: { model_id: string; step: number } | null;
  last_job: Pick<TrainingJob, "id" | "status" | "progress" | "updated_at" | "error_message"> | null;
  /** Only for admins. */
  workspace?: string;
  created_at: string;
}

/** The server that answers. What only the server of --engine-url knows is null. */
export interface ServerInfo {
  version: string;
  started_at: string;
  role: "all" | "api";
  model: { id: string; context_length: number; parameters: number | null };
  /** Type of the weights in linear layers. */
  dtype: string | null;
  threads: number | null;
  /** Choices that are generated now, and those that wait for a slot. */
  requests: { running: number; waiting: number };
}

/** A server of the deployment. */
export interface ServerStatus {
  id: string;
  role: "all" | "api" | "worker";
  version: string;
  /** It was heard of within the last 30 seconds. */
  alive: boolean;
  silent_seconds: number;
  address: string;
  models: string[];
  replicas: { name: string; state: string; in_flight: number }[];
  running_jobs: { id: string; model_id: string; kind: string; progress: number | null }[];
}

export interface Checkpoint {
  id: string;
  step: number;
  metrics: Record<string, number>;
  created_at: string;
  job_id: string | null;
  bytes: number;
  /** SHA-256 over its files, in hex: equal steps have equal digests. Null for steps of early versions. */
  digest: string | null;
  origin: "training" | "registration" | "fork" | "rollback";
  /** Whether the engine has its adapter loaded. */
  loaded: boolean;
}

/** `kept_steps` are the newest step and steps in use. */
export interface DeletedCheckpoints {
  deleted_count: number;
  not_found_steps: number[];
  kept_steps: number[];
}

export interface TrainingJob {
  id: string;
  model_id: string;
  status: "PENDING" | "RUNNING" | "COMPLETED" | "FAILED" | "CANCELLED";
  progress: number | null;
  error_message: string | null;
  training_start: string | null;
  training_end: string | null;
  created_at: string;
  updated_at: string;
  kind: "rl" | "sft";
  from_step: number | null;
  /** The step that the job created. */
  step: number | null;
  /** As the server understood it, under the names of requests. */
  config: Record<string, unknown>;
  /** Number of starts. */
  attempts: number;
  totals: JobTotals | null;
  gradient_steps: { done: number; total: number } | null;
  report?: JobReport | null;
}

export interface JobTotals {
  groups: number;
  /** Those whose rewards differ; null for jobs of earlier versions. */
  trainable_groups: number | null;
  trajectories: number;
  trained: number;
  by_status: Record<string, number>;
  tokens: number;
  trainable_tokens: number;
}

export interface JobReport {
  trajectories?: {
    group: number;
    trajectory: number;
    status: string;
    reason: string | null;
    message: string | null;
    reward: number;
    advantage: number;
  }[];
  totals: Record<string, number>;
  usage: { tokens: number; seconds: number; peak_bytes: number } | null;
}

export interface TrainingEvent {
  id: string;
  type:
    | "training_started"
    | "gradient_step"
    | "training_warning"
    | "training_ended"
    | "training_failed"
    | (string & {});
  data: Record<string, number> & { error_message?: string; code?: string; message?: string };
  created_at: string;
}

export interface Message {
  role: string;
  content?: unknown;
  [field: string]: unknown;
}

/** A conversation to learn from. Its last message is the assistant's. */
export interface SftExample {
  messages: Message[];
  tools?: unknown[];
}

export interface SftConfig {
  batch_size?: number | "auto";
  /** One rate, or one per batch. */
  learning_rate?: number | number[];
  assistant_turns?: "all" | "last";
}

/** A choice exactly as a chat completion returned it. */
export interface Choice {
  message: Message;
  finish_reason?: string | null;
  logprobs?: unknown;
  token_ids?: number[] | null;
  prompt_token_ids?: number[] | null;
  policy_version?: number;
  [field: string]: unknown;
}

export interface ChatCompletion {
  id: string;
  model: string;
  choices: (Choice & { message: Message & { content: string | null } })[];
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
}

/** A piece of a reply that is streamed. */
export interface ChatChunk {
  id: string;
  model: string;
  choices: {
    delta: { content?: string | null; reasoning?: string | null; reasoning_content?: string | null };
    finish_reason: string | null;
  }[];
}

export interface Trajectory {
  messages_and_choices: (Message | Choice)[];
  tools?: unknown[] | null;
  additional_histories?: { messages_and_choices: (Message | Choice)[]; tools?: unknown[] | null }[];
  reward: number;
  initial_policy_version?: number | null;
  final_policy_version?: number | null;
  metrics?: Record<string, number | boolean>;
  metadata?: Record<string, unknown>;
  logs?: string[];
}

export interface TrajectoryGroup {
  trajectories: Trajectory[];
  exceptions?: { type: string; message: string }[];
  metrics?: Record<string, number | boolean>;
  metadata?: Record<string, unknown>;
}

/** Every field is explained in docs/reference/training.md. */
export interface TrainingConfig {
  learning_rate?: number;
  ppo?: boolean;
  loss_fn?: "cispo" | "ppo";
  epsilon?: number;
  epsilon_high?: number;
  scale_rewards?: boolean;
  advantage_balance?: number;
  importance_sampling_level?: "token" | "sequence" | "average" | "geometric_average";
  mask_prob_ratio?: boolean;
  max_negative_advantage_importance_sampling_weight?: number;
  truncated_importance_sampling?: number;
  precalculate_logprobs?: boolean;
  alt_k2_tau?: number;
  kl_penalty_coef?: number;
  kl_penalty_reference_step?: number;
  kl_penalty_step_lag?: number;
  kl_penalty_source?: "current_learner" | "sample";
  allow_training_without_logprobs?: boolean;
  /** Tokens per pack of sequences. */
  packed_sequence_length?: number;
  /** Packs per gradient step, or sequences without packs. */
  grad_accumulation_sequences?: number | "all";
  max_steps_off_policy?: number;
  weight_decay?: number;
  max_grad_norm?: number;
  seed?: number;
  [field: string]: unknown;
}

export interface Principal {
  id: string;
  name: string;
  scopes: ("inference" | "training" | "admin")[];
  workspace: { id: string; name: string };
  /** null = never. */
  expires_at: string | null;
  /** Whether the key is a browser's session. */
  session: boolean;
}

/** Who the key belongs to, and what its workspace has on disk. */
export interface Me extends Principal {
  /** null without training, or without its scope. */
  storage: Storage | null;
}

/** In bytes. */
export interface Storage {
  limit: number;
  /** The sum of all that follow. */
  used: number;
  steps: number;
  /** Deleted steps and gradients whose files are still there. */
  deleted: number;
  /** Data of open jobs and operations, and what they will leave. */
  open_jobs: number;
  /** Gradients that wait for an optimizer step. */
  gradients: number;
  /** What jobs were trained on. */
  records: number;
  /** Reports, events and curves of jobs, and results of operations. */
  results: number;
  /** What is being written now. */
  reserved: number;
}

export interface SessionCode {
  /** Valid for 10 minutes, and once. */
  code: string;
  url: string;
  expires_at: string;
}

/** A request in progress, as GET /v1/engine lists it. */
export interface RunningRequest {
  /** As in the x-request-id header of its reply. */
  id: string;
  /** The name of its token. */
  who: string;
  model: string | null;
  state: "waiting" | "prefill" | "decoding";
  /** Tokens. */
  prompt: number;
  cached: number | null;
  output: number;
  choices: number;
  age_ms: number;
  priority: number;
}

/** One second of the engine's history. */
export interface EnginePoint {
  /** Milliseconds since 1970. */
  at: number;
  running: number;
  waiting: number;
  tokens_per_s: number;
  prompt_tokens_per_s: number;
  /** Fraction of the key/value memory in use. */
  cache: number;
  /** Milliseconds; null without a first token in this second. */
  ttft_p50: number | null;
  ttft_p99: number | null;
}

export interface EngineStep {
  /** Milliseconds since 1970. */
  at: number;
  /** Sequences that got their next token. */
  decode: number;
  /** Tokens of prompts. */
  prefill: number;
}

export interface EngineState {
  /** Milliseconds since 1970. */
  now: number;
  running: number;
  waiting: number;
  preemptions: number;
  /** Tokens; the fraction is 0 to 1. */
  cache: { used: number | null; total: number | null; fraction: number };
  prefix: { queries: number; hits: number };
  /** One per slot; null = free. */
  adapters: ({ name: string | null; requests: number } | null)[];
  requests: RunningRequest[];
  /** One per second, the newest last. */
  history: EnginePoint[];
  steps: EngineStep[];
}
