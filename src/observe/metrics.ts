// Records metrics for Prometheus. Each server has its own registry, so that tests do not share state.
import { Counter, collectDefaultMetrics, Gauge, Histogram, type Metric, type MetricValue, Registry } from "prom-client";
import type { EngineStats, ModelInfo, ReplicaFacts } from "../engine/contract.ts";
import { replicaAlias } from "../engine/fleet/replica.ts";
import { type CounterName, type GaugeName, type HistogramName, METRICS, type MetricRow } from "./metric-table.ts";

// A Prometheus histogram whose counts come from elsewhere. At each scrape it shows the counts it was last given.
// prom-client's own histogram can only observe single values.

export interface Counts {
  /** Upper bounds, ascending. */
  bounds: readonly number[];
  /** One count per bound, not cumulative, and one for values above the last bound. */
  counts: readonly number[];
  sum: number;
}

type Labels = Record<string, string>;

class SharedHistogram {
  readonly name: string;
  readonly #help: string;
  #labels: Labels = {};
  #counts: Counts | null = null;

  constructor(name: string, help: string, registry: Registry) {
    this.name = name;
    this.#help = help;
    registry.registerMetric(this as unknown as Metric);
  }

  show(labels: Labels, counts: Counts): void {
    this.#labels = labels;
    this.#counts = counts;
  }

  /** Called by the registry. */
  async get() {
    return { name: this.name, help: this.#help, type: "histogram", values: this.#samples() };
  }

  #samples(): (MetricValue<string> & { metricName: string })[] {
    if (this.#counts === null) return [];
    const { bounds, counts, sum } = this.#counts;
    const sample = (suffix: string, value: number, labels: Labels = {}) => ({
      metricName: `${this.name}_${suffix}`,
      labels: { ...labels, ...this.#labels },
      value,
    });
    let total = 0;
    const buckets = counts.map((count, i) => {
      total += count;
      return sample("bucket", total, { le: String(bounds[i] ?? "+Inf") });
    });
    return [...buckets, sample("sum", sum), sample("count", total)];
  }
}

/** A request that has ended. Times are performance.now(), in milliseconds. */
export interface RequestRecord {
  model: string;
  promptTokens: number;
  cachedTokens: number;
  /** Tokens per choice. */
  generated: readonly number[];
  finishReasons: readonly string[];
  n: number;
  maxTokens: number;
  arrivedAt: number;
  /** When the engine received it. */
  submittedAt: number;
  /** Queue time, measured from `submittedAt`. Null if the engine did not report it. */
  queuedMs: number | null;
  firstTokenAt: number | null;
  endedAt: number;
}

export interface EngineFacts {
  model: string;
  info: ModelInfo;
  stats: EngineStats;
  /** Empty unless the engine is a fleet. */
  replicas: readonly ReplicaFacts[];
  prefixCaching: boolean;
  adapters: readonly string[];
}

const REPLICA_STATES: readonly ReplicaFacts["state"][] = ["starting", "ready", "draining", "away", "excluded"];

/** Counted by a fleet. */
const REPLICA_COUNTERS = {
  requests: "flywheel:replica_requests_total",
  failures: "flywheel:replica_failures_total",
  resumes: "flywheel:replica_resumes_total",
  promptTokens: "flywheel:replica_prompt_tokens_total",
  prefixHitTokens: "flywheel:replica_prefix_hit_tokens_total",
  generatedTokens: "flywheel:replica_generated_tokens_total",
} as const satisfies Partial<Record<keyof ReplicaFacts, CounterName>>;
const COUNTED = Object.keys(REPLICA_COUNTERS) as (keyof typeof REPLICA_COUNTERS)[];

/** Counted by the engine. */
const STEP_TOKENS = "vllm:iteration_tokens_total";

export class Metrics {
  readonly #registry = new Registry();
  readonly #counters = new Map<string, Counter>();
  readonly #gauges = new Map<string, Gauge>();
  readonly #histograms = new Map<string, Histogram>();
  readonly #interToken = new Map<string, Histogram.Internal<string>>();
  readonly #stepTokens: SharedHistogram;

  constructor() {
    const { [STEP_TOKENS]: stepTokens, ...recorded } = METRICS;
    this.#stepTokens = new SharedHistogram(STEP_TOKENS, stepTokens.help, this.#registry);
    for (const [name, { kind, help, labels, buckets = [] }] of Object.entries<MetricRow>(recorded)) {
      const common = { name, help, labelNames: [...labels], registers: [this.#registry] };
      if (kind === "histogram") this.#histograms.set(name, new Histogram({ ...common, buckets: [...buckets] }));
      else if (kind === "gauge") this.#gauges.set(name, new Gauge(common));
      else this.#counters.set(name, new Counter(common));
    }
    // process_* and nodejs_*: CPU, memory, event-loop lag.
    collectDefaultMetrics({ register: this.#registry });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  httpResponse(method: string, handler: string, status: number): void {
    this.#count("http_requests_total", { method, handler, status: `${Math.floor(status / 100)}xx` });
  }

  rejected(code: string): void {
    this.#count("flywheel_rejected_requests_total", { code });
  }

  streamAborted(reason: "client_gone" | "slow_client" | "shutdown" | "error"): void {
    this.#count("flywheel_stream_aborts_total", { reason });
  }

  /** Called for every token, so the labels are bound once per model. */
  interTokenLatency(model: string, seconds: number): void {
    let bound = this.#interToken.get(model);
    if (bound === undefined) {
      bound = this.#histogram("vllm:inter_token_latency_seconds").labels({ model_name: model, engine: "0" });
      this.#interToken.set(model, bound);
    }
    bound.observe(seconds);
  }

  grammarCompiled(seconds: number): void {
    this.#histogram("flywheel_grammar_compile_seconds").observe(seconds);
  }

  trainingJobs(waiting: number, running: number): void {
    this.#gauge("flywheel_training_jobs", { state: "waiting" }, waiting);
    this.#gauge("flywheel_training_jobs", { state: "running" }, running);
  }

  gradientStep(): void {
    this.#count("flywheel_training_steps_total", {});
  }

  trainingJobEnded(status: string, seconds: number, tokens: number): void {
    this.#count("flywheel_training_jobs_total", { status });
    this.#count("flywheel_training_tokens_total", {}, tokens);
    this.#histogram("flywheel_training_job_seconds").observe(seconds);
  }

  requestEnded(record: RequestRecord): void {
    const { model, arrivedAt, submittedAt, firstTokenAt, endedAt, queuedMs } = record;
    const observe = (name: HistogramName, value: number) =>
      this.#histogram(name).observe({ model_name: model, engine: "0" }, value);
    for (const reason of record.finishReasons) {
      this.#count("vllm:request_success_total", { model_name: model, engine: "0", finished_reason: reason });
    }
    const total = record.generated.reduce((sum, n) => sum + n, 0);
    observe("vllm:request_prompt_tokens", record.promptTokens);
    observe("vllm:request_generation_tokens", total);
    observe("vllm:request_max_num_generation_tokens", Math.max(0, ...record.generated));
    observe("vllm:request_params_n", record.n);
    observe("vllm:request_params_max_tokens", record.maxTokens);
    observe("vllm:e2e_request_latency_seconds", (endedAt - arrivedAt) / 1000);
    this.#count("vllm:prompt_tokens_cached_total", { model_name: model, engine: "0" }, record.cachedTokens);
    if (firstTokenAt === null) return;
    observe("vllm:time_to_first_token_seconds", (firstTokenAt - arrivedAt) / 1000);
    observe("vllm:request_decode_time_seconds", (endedAt - firstTokenAt) / 1000);
    const decoded = total - record.n;
    if (decoded > 0) {
      observe("vllm:request_time_per_output_token_seconds", ((endedAt - firstTokenAt) * record.n) / 1000 / decoded);
    }
    if (queuedMs !== null) {
      observe("vllm:request_queue_time_seconds", queuedMs / 1000);
      observe("vllm:request_prefill_time_seconds", (firstTokenAt - submittedAt - queuedMs) / 1000);
      observe("vllm:request_inference_time_seconds", (endedAt - submittedAt - queuedMs) / 1000);
    }
  }

  /** Returns the Prometheus text with the engine's current state. */
  async render(facts: EngineFacts): Promise<string> {
    const { stats, model, info } = facts;
    const labels = { model_name: model, engine: "0" };
    this.#gauge("vllm:num_requests_running", labels, stats.running);
    this.#gauge("vllm:num_requests_waiting", labels, stats.waiting);
    this.#gauge("vllm:num_requests_waiting_by_reason", { ...labels, reason: "capacity" }, stats.waiting);
    this.#gauge("vllm:num_requests_waiting_by_reason", { ...labels, reason: "deferred" }, 0);
    this.#gauge("vllm:kv_cache_usage_perc", labels, stats.kvUsage);
    this.#total("vllm:prompt_tokens_total", labels, stats.promptTokens);
    this.#total("vllm:generation_tokens_total", labels, stats.generatedTokens);
    this.#total("vllm:num_preemptions_total", labels, stats.preemptions);
    this.#total("vllm:prefix_cache_queries_total", labels, stats.prefixQueries);
    this.#total("vllm:prefix_cache_hits_total", labels, stats.prefixHits);
    this.#total("flywheel_engine_steps_total", labels, stats.steps);
    this.#stepTokens.show(labels, stats.stepTokens);
    this.#showReplicas(facts.replicas);
    this.#gauges.get("vllm:lora_requests_info")!.reset();
    const adapters = { max_lora: String(info.maxLoras), running_lora_adapters: facts.adapters.join(",") };
    this.#gauge("vllm:lora_requests_info", adapters, 1);
    const cache = {
      block_size: String(info.linkSize),
      positions_per_block: String(info.positionsPerBlock),
      enable_prefix_caching: String(facts.prefixCaching),
      kv_cache_size_tokens: String(info.cacheTokens ?? "None"),
      kv_cache_max_concurrency: info.cacheTokens === null ? "None" : String(info.cacheTokens / info.maxModelLen),
    };
    this.#gauges.get("vllm:cache_config_info")!.reset();
    this.#gauge("vllm:cache_config_info", cache, 1);
    return this.#registry.metrics();
  }

  #showReplicas(replicas: readonly ReplicaFacts[]): void {
    for (const name of Object.values(REPLICA_COUNTERS)) this.#counters.get(name)!.reset();
    for (const [index, facts] of replicas.entries()) {
      const replica = replicaAlias(index);
      for (const state of REPLICA_STATES) {
        this.#gauge("flywheel:replica_state", { replica, state }, state === facts.state ? 1 : 0);
      }
      this.#gauge("flywheel:replica_in_flight", { replica }, facts.inFlight);
      for (const field of COUNTED) this.#count(REPLICA_COUNTERS[field], { replica }, facts[field]);
    }
  }

  #histogram(name: HistogramName): Histogram {
    return this.#histograms.get(name)!;
  }

  #count(name: CounterName, labels: Record<string, string>, amount = 1): void {
    this.#counters.get(name)!.inc(labels, amount);
  }

  #gauge(name: GaugeName, labels: Record<string, string>, value: number): void {
    this.#gauges.get(name)!.set(labels, value);
  }

  /** Sets a counter that the engine counts. */
  #total(name: CounterName, labels: Record<string, string>, value: number): void {
    this.#counters.get(name)!.reset();
    this.#count(name, labels, value);
  }
}
