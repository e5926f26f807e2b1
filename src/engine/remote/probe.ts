// Watches one server: is it up, what does it serve, how busy is it. Asks every two seconds. A server that has said
// nothing for ten is unreachable, whatever its connections look like.
import type { HttpClient, Reply } from "./http-client.ts";
import type { ServerFacts } from "./vllm-dialect.ts";

// Reads the few numbers that the fleet wants from a Prometheus page.

interface ServerMetrics {
  /** Requests that run or wait. null: the page does not say. */
  requests: number | null;
  blockSize: number | null;
  /** Only Flywheel tells: its attention adds numbers in blocks of this many, and so does the trainer. */
  positionsPerBlock: number | null;
  cacheTokens: number | null;
  maxLoras: number | null;
  /** Seconds since 1970. */
  startedAt: string | null;
}

function readMetrics(page: string): ServerMetrics {
  const sums = new Map<string, number>();
  const labels = new Map<string, string>();
  let startedAt: string | null = null;
  for (const line of page.split("\n")) {
    const match = LINE.exec(line);
    if (match === null) continue;
    const [, name, labelText = "", value] = match;
    if (name === "process_start_time_seconds") startedAt = value!;
    else if (name!.endsWith("_info")) labels.set(name!, labelText);
    else sums.set(name!, (sums.get(name!) ?? 0) + Number(value)); // one series for each engine behind the server
  }
  const running = sums.get("vllm:num_requests_running");
  return {
    requests: running === undefined ? null : running + (sums.get("vllm:num_requests_waiting") ?? 0),
    blockSize: labelOf(labels.get("vllm:cache_config_info"), "block_size"),
    cacheTokens: labelOf(labels.get("vllm:cache_config_info"), "kv_cache_size_tokens"),
    positionsPerBlock: labelOf(labels.get("vllm:cache_config_info"), "positions_per_block"),
    maxLoras: labelOf(labels.get("vllm:lora_requests_info"), "max_lora"),
    startedAt,
  };
}

const LINE =
  /^(process_start_time_seconds|vllm:num_requests_running|vllm:num_requests_waiting|vllm:cache_config_info|vllm:lora_requests_info)(?:\{(.*)\})? (\S+)/;

function labelOf(labels: string | undefined, name: string): number | null {
  const value = Number(new RegExp(`(?:^|,)${name}="(\\d+)"`).exec(labels ?? "")?.[1] ?? Number.NaN);
  return Number.isNaN(value) ? null : value;
}

export interface ProbeTimes {
  intervalMs: number;
  /** Silence after which a server is unreachable. */
  silenceMs: number;
}

export const PROBE_TIMES: ProbeTimes = { intervalMs: 2000, silenceMs: 10_000 };

/** What a server told about itself when it came up. */
export interface Introduction {
  server: Omit<ServerFacts, "vocabSize" | "front">;
  maxModelLen: number;
  policy: "priority" | "fcfs";
  /** Names of adapters that are loaded. */
  adapters: readonly string[];
  metrics: ServerMetrics;
}

/** The server answers, but it is not one that can be used. Asking again does not help unless it is replaced. */
export class Unusable extends Error {
  override name = "Unusable";
}

/** "unhealthy": it answers, and says that it takes no requests. "gone": it does not answer. */
export type Answer =
  | { kind: "up"; metrics: ServerMetrics }
  | { kind: "unhealthy"; why: string }
  | { kind: "gone"; why: string };

export class Probe {
  readonly #client: HttpClient;
  readonly #times: ProbeTimes;

  constructor(client: HttpClient, times: ProbeTimes) {
    this.#client = client;
    this.#times = times;
  }

  /** Health and metrics, waited for until `signal` aborts. Never rejects. */
  async check(signal: AbortSignal): Promise<Answer> {
    try {
      const get = (path: string) => this.#client.whole("GET", path, { signal });
      const [health, metrics] = await Promise.all([get("/health"), get("/metrics")]);
      if (health.status !== 200) return { kind: "unhealthy", why: `/health answers ${health.status}` };
      return { kind: "up", metrics: readMetrics(metrics.status === 200 ? metrics.text : "") };
    } catch (error) {
      return { kind: "gone", why: (error as Error).message };
    }
  }

  /** Everything else, when the server is new. It must serve a model with this vocabulary. Throws Unusable. */
  async introduce(metrics: ServerMetrics, vocabSize: number): Promise<Introduction> {
    const [version, models] = await Promise.all([this.#get("/version"), this.#get("/v1/models")]);
    if (models.status === 401 || models.status === 403) {
      throw new Unusable("it wants another key: give --engine-api-key");
    }
    const cards = (json(models)?.data ?? []) as ModelCard[];
    const base = Array.isArray(cards) ? cards.find((card) => !card.parent) : undefined;
    if (models.status !== 200 || base === undefined || typeof base.id !== "string") {
      throw new Unusable("GET /v1/models lists no model: it is no vLLM or Flywheel server");
    }
    const flywheel = base.owned_by === "flywheel";
    const number = /^(\d+)\.(\d+)/.exec(String(json(version)?.version ?? ""));
    if (number === null) throw new Unusable("GET /version gives no version: it is no vLLM or Flywheel server");
    if (typeof base.max_model_len !== "number") throw new Unusable("GET /v1/models gives no max_model_len");
    const server = { flywheel, version: [Number(number[1]), Number(number[2])] as const, model: base.id };
    return {
      server,
      maxModelLen: base.max_model_len,
      policy: await this.#tryOut(base.id, vocabSize),
      adapters: cards.filter((card) => card.parent).map((card) => card.id),
      metrics,
    };
  }

  /** Generates one token, with a priority. A server that schedules first come, first served refuses priorities. */
  async #tryOut(model: string, vocabSize: number, priority = 1): Promise<"priority" | "fcfs"> {
    const prompt = [vocabSize - 1];
    const body = { model, prompt, max_tokens: 1, temperature: 0, priority, logprobs: 0, return_token_ids: true };
    const options = { body, timeoutMs: 60_000 };
    const reply = await this.#client.whole("POST", "/v1/completions", options);
    const isRefused = reply.status === 400 && /priority/i.test(reply.text);
    if (isRefused && priority !== 0) return this.#tryOut(model, vocabSize, 0);
    if (reply.status === 400 && /vocabulary/i.test(reply.text)) {
      throw new Unusable(`it serves a model with fewer than the ${vocabSize} tokens of --model`);
    }
    if (reply.status !== 200) {
      throw new Unusable(`POST /v1/completions answers ${reply.status}: ${reply.text.slice(0, 200)}`);
    }
    const choices = json(reply)?.choices as { token_ids?: unknown }[] | undefined;
    if (!Array.isArray(choices?.[0]?.token_ids)) {
      throw new Unusable("POST /v1/completions returns no token ids: it must be vLLM 0.17 or newer, or Flywheel");
    }
    return priority === 0 ? "fcfs" : "priority";
  }

  #get(path: string): Promise<Reply> {
    return this.#client.whole("GET", path, { timeoutMs: this.#times.silenceMs });
  }
}

interface ModelCard {
  id: string;
  owned_by?: string;
  parent?: string | null;
  max_model_len?: number | null;
}

function json({ text }: Reply): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
