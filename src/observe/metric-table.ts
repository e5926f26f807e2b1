// Every Prometheus metric, in one table. Names are vLLM's, so that its dashboards work. docs/reference/metrics.md is
// generated from this table. Gauges and engine counters are read at each scrape; other metrics are recorded per request.

export interface MetricRow<Kind extends "gauge" | "counter" | "histogram" = "gauge" | "counter" | "histogram"> {
  kind: Kind;
  help: string;
  labels: readonly string[];
  /** Buckets of a histogram, unless the engine defines them. */
  buckets?: readonly number[];
}

const MODEL = ["model_name", "engine"] as const;
const REPLICA = ["replica"] as const;

const TTFT = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
];
const PER_TOKEN = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80];
const LATENCY = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680];
const TOKENS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000];

const histogram = (
  help: string,
  buckets: readonly number[],
  labels: readonly string[] = MODEL,
): MetricRow<"histogram"> => ({ kind: "histogram", help, labels, buckets });
const gauge = (help: string, labels: readonly string[] = MODEL): MetricRow<"gauge"> => ({
  kind: "gauge",
  help,
  labels,
});
const counter = (help: string, labels: readonly string[] = MODEL): MetricRow<"counter"> => ({
  kind: "counter",
  help,
  labels,
});

export const METRICS = {
  "vllm:num_requests_running": gauge("Choices being generated now."),
  "vllm:num_requests_waiting": gauge("Choices waiting for a slot."),
  "vllm:num_requests_waiting_by_reason": gauge(
    "Waiting choices by reason: capacity (waiting for a slot) or deferred (always 0).",
    [...MODEL, "reason"],
  ),
  "vllm:kv_cache_usage_perc": gauge("Key/value cache in use, 0 to 1."),
  "vllm:lora_requests_info": gauge("Always 1. The labels list the adapters loaded now.", [
    "max_lora",
    "running_lora_adapters",
  ]),
  "vllm:cache_config_info": gauge(
    "Always 1. The labels describe the key/value cache: its size, and how many requests of full length fit.",
    ["block_size", "positions_per_block", "enable_prefix_caching", "kv_cache_size_tokens", "kv_cache_max_concurrency"],
  ),
  "vllm:prompt_tokens_total": counter("Prompt tokens of requests whose prefill is done, including cached tokens."),
  "vllm:generation_tokens_total": counter("Tokens generated."),
  "vllm:num_preemptions_total": counter("Choices that were preempted: they gave up their memory and were recomputed."),
  "vllm:prefix_cache_queries_total": counter("Prompt tokens looked up in the prefix cache."),
  "vllm:prefix_cache_hits_total": counter("Prompt tokens found in the prefix cache."),
  "vllm:prompt_tokens_cached_total": counter("Prompt tokens of finished requests that came from the prefix cache."),
  "vllm:request_success_total": counter(
    "Choices that ended, by reason: stop, length, repetition, or abort (the client left, the server stopped, or an error).",
    [...MODEL, "finished_reason"],
  ),
  "vllm:time_to_first_token_seconds": histogram("Time from arrival to the first token.", TTFT),
  "vllm:inter_token_latency_seconds": histogram("Time between two outputs of a choice, per token.", PER_TOKEN),
  "vllm:request_time_per_output_token_seconds": histogram("Decode time divided by tokens after the first.", PER_TOKEN),
  "vllm:e2e_request_latency_seconds": histogram("Time from arrival to the last token.", LATENCY),
  "vllm:request_queue_time_seconds": histogram(
    "Time that a request waits in the engine until the first step that works on it.",
    LATENCY,
  ),
  "vllm:request_inference_time_seconds": histogram("Time from the first step to the last token.", LATENCY),
  "vllm:request_prefill_time_seconds": histogram("Time from the first step to the first token.", LATENCY),
  "vllm:request_decode_time_seconds": histogram("Time from the first token to the last.", LATENCY),
  "vllm:request_prompt_tokens": histogram("Prompt tokens per request.", TOKENS),
  "vllm:request_generation_tokens": histogram("Tokens generated per request.", TOKENS),
  "vllm:request_max_num_generation_tokens": histogram("Tokens of the longest choice per request.", TOKENS),
  // Counted by the engine, in its own buckets.
  "vllm:iteration_tokens_total": {
    kind: "histogram",
    help: "Tokens per model step: generated tokens, and the computed tokens of prompts that the step completed.",
    labels: MODEL,
  },
  "vllm:request_params_n": histogram("Parameter n per request.", [1, 2, 5, 10, 20]),
  "vllm:request_params_max_tokens": histogram("Output budget per request.", TOKENS),
  http_requests_total: counter(
    "HTTP responses. status is 2xx, 4xx and so on; handler is the route's pattern or none.",
    ["method", "handler", "status"],
  ),
  flywheel_stream_aborts_total: counter(
    "Streams that ended early, by reason: client_gone, slow_client, shutdown, error.",
    ["reason"],
  ),
  flywheel_rejected_requests_total: counter(
    "Error responses by name. Excludes unknown paths, wrong methods, broken HTTP and errors inside streams.",
    ["code"],
  ),
  flywheel_grammar_compile_seconds: histogram(
    "Time to compile a structured-output constraint.",
    [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5],
    [],
  ),
  flywheel_engine_steps_total: counter("Model steps run."),
  "flywheel:replica_state": gauge(
    "Only with several engines, numbered in the order of --engine-url: 1 for the state of a replica, 0 for the others. States: starting, ready, draining, away (it does not answer), excluded (it failed a moment ago).",
    ["replica", "state"],
  ),
  "flywheel:replica_in_flight": gauge("Choices of this server on a replica.", REPLICA),
  "flywheel:replica_requests_total": counter("Requests sent to a replica.", REPLICA),
  "flywheel:replica_failures_total": counter("Choices that a replica lost.", REPLICA),
  "flywheel:replica_resumes_total": counter(
    "Choices that a replica finished after another replica had lost them.",
    REPLICA,
  ),
  "flywheel:replica_prompt_tokens_total": counter(
    "Prompt tokens that a replica computed or found in its prefix cache.",
    REPLICA,
  ),
  "flywheel:replica_prefix_hit_tokens_total": counter(
    "Prompt tokens that a replica found in its prefix cache.",
    REPLICA,
  ),
  "flywheel:replica_generated_tokens_total": counter("Tokens that a replica generated.", REPLICA),
  flywheel_training_jobs: gauge("Training jobs, by state: waiting, running.", ["state"]),
  flywheel_training_jobs_total: counter("Training jobs that have ended, by status: COMPLETED, FAILED, CANCELLED.", [
    "status",
  ]),
  flywheel_training_job_seconds: histogram(
    "Duration of training jobs.",
    [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600],
    [],
  ),
  flywheel_training_steps_total: counter("Gradient steps taken.", []),
  flywheel_training_tokens_total: counter("Tokens of finished training jobs, including prompts.", []),
} as const satisfies Record<string, MetricRow>;

type Table = typeof METRICS;
type NameOfKind<Kind extends MetricRow["kind"]> = {
  [Name in keyof Table]: Table[Name]["kind"] extends Kind ? Name : never;
}[keyof Table];

export type GaugeName = NameOfKind<"gauge">;
export type CounterName = NameOfKind<"counter">;
export type HistogramName = NameOfKind<"histogram">;
