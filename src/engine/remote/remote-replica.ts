// A vLLM or Flywheel server as one engine of a fleet. It runs what it is given, tells how the server is, and ends all
// requests as lost when the server falls silent or is replaced.

import { randomBytes } from "node:crypto";
import type { GenerateRequest, Generation, ModelInfo } from "../contract.ts";
import type { Replica, ReplicaLoad, ReplicaState } from "../fleet/replica.ts";
import { HttpClient } from "./http-client.ts";
import { type Answer, PROBE_TIMES, Probe, type ProbeTimes, Unusable } from "./probe.ts";
import { RemoteAdapters } from "./remote-adapters.ts";
import { RemoteGeneration } from "./remote-generation.ts";
import type { ServerFacts } from "./vllm-dialect.ts";

export interface RemoteOptions {
  url: string;
  apiKey: string | null;
  /** This server, among all that may share the replica: the same after a restart. */
  front: string;
  maxInFlight: number;
  /** The model as its files describe it. The server may serve a shorter context. */
  vocabSize: number;
  maxModelLen: number;
  /** For servers that do not tell. */
  maxLoras: number;
  maxLoraRank: number;
  times?: Partial<ProbeTimes>;
  /** Called with what an operator should know. */
  onNotice?: (message: string, details: Record<string, unknown>) => void;
}

export class RemoteReplica implements Replica {
  readonly name: string;
  readonly maxInFlight: number;
  onChange: (() => void) | null = null;
  readonly #options: RemoteOptions;
  readonly #notice: NonNullable<RemoteOptions["onNotice"]>;
  readonly #times: ProbeTimes;
  readonly #client: HttpClient;
  readonly #probe: Probe;
  readonly #adapters: RemoteAdapters;
  readonly #running = new Set<RemoteGeneration>();
  readonly #closed = new AbortController();
  #state: ReplicaState = "starting";
  #info: ModelInfo | null = null;
  #server: ServerFacts | null = null;
  #identity = "";
  #load: ReplicaLoad | null = null;
  #unusable: string | null = null;
  #problem: string | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: RemoteOptions) {
    this.name = options.url;
    this.maxInFlight = options.maxInFlight;
    this.#options = options;
    this.#notice = options.onNotice ?? (() => {});
    this.#times = { ...PROBE_TIMES, ...options.times };
    this.#client = new HttpClient(options.url, options.apiKey);
    this.#probe = new Probe(this.#client, this.#times);
    this.#adapters = new RemoteAdapters(this.#client, options.front, (message, details) =>
      this.#notice(message, { engine: this.name, ...details }),
    );
    void this.#watch();
  }

  get state(): ReplicaState {
    return this.#state;
  }

  get info(): ModelInfo | null {
    return this.#info;
  }

  get identity(): string {
    return this.#identity;
  }

  get load(): ReplicaLoad | null {
    return this.#load;
  }

  /** Why the server that answers there cannot be used; null when it can, or none answers. */
  get unusable(): string | null {
    return this.#unusable;
  }

  /** Why it is not ready; null when it is, or has not been asked yet. */
  get problem(): string | null {
    return this.#problem;
  }

  get isFlywheel(): boolean {
    return this.#server?.flywheel ?? false;
  }

  generate(request: GenerateRequest): Generation {
    const server = this.#server;
    if (server === null || this.#info === null) throw new Error(`${this.name} has never been ready`);
    const running: RemoteGeneration = new RemoteGeneration(request, {
      client: this.#client,
      server,
      blockSize: this.#info.linkSize,
      id: randomBytes(12).toString("hex"),
      onEnd: () => this.#running.delete(running),
    });
    this.#running.add(running);
    void running.start();
    return running.generation;
  }

  loadAdapter(version: string, folder: string): Promise<void> {
    return this.#adapters.load(version, folder, this.#closed.signal);
  }

  unloadAdapter(version: string): Promise<void> {
    return this.#adapters.unload(version, this.#closed.signal);
  }

  async close(): Promise<void> {
    this.#closed.abort();
    if (this.#timer !== null) clearTimeout(this.#timer);
    for (const running of [...this.#running]) running.generation.abort();
    this.#client.close();
  }

  async #watch(): Promise<void> {
    const { intervalMs, silenceMs } = this.#times;
    const silent = new AbortController();
    // In ticks, of which the last answer was one ago: a time in which this process stood still is not the server's silence.
    let ticks = Math.round(silenceMs / intervalMs) - 1;
    const clock = setInterval(() => {
      if (--ticks <= 0) silent.abort(new Error("it does not answer"));
    }, intervalMs);
    const answer = await this.#probe.check(silent.signal);
    clearInterval(clock);
    if (this.#closed.signal.aborted) return;
    try {
      await this.#take(answer);
    } catch (error) {
      this.#unusable = error instanceof Unusable ? error.message : null;
      this.#become("away", (error as Error).message);
    }
    if (!this.#closed.signal.aborted) this.#timer = setTimeout(() => void this.#watch(), this.#times.intervalMs);
  }

  async #take(answer: Answer): Promise<void> {
    if (answer.kind === "gone") return this.#become("away", answer.why);
    // It may finish what it runs: Flywheel answers so while it stops.
    if (answer.kind === "unhealthy") return this.#become("draining", answer.why);
    const { metrics } = answer;
    this.#load = metrics.requests === null ? null : { requests: metrics.requests, at: performance.now() };
    const identity = metrics.startedAt ?? this.#identity;
    if (this.#state !== "ready" || identity !== this.#identity) {
      await this.#meet(metrics);
      if (identity !== this.#identity) this.#loseAll("it was restarted");
      this.#identity = identity;
    }
    this.#become("ready", null);
  }

  async #meet(metrics: Parameters<Probe["introduce"]>[0]): Promise<void> {
    const { vocabSize, maxModelLen, maxLoras, maxLoraRank, front } = this.#options;
    const met = await this.#probe.introduce(metrics, vocabSize);
    this.#unusable = null;
    this.#server = { ...met.server, vocabSize, front };
    const block = metrics.blockSize ?? 16;
    this.#info = {
      vocabSize,
      maxModelLen: Math.min(maxModelLen, met.maxModelLen),
      positionsPerBlock: metrics.positionsPerBlock ?? block,
      cacheTokens: metrics.cacheTokens,
      linkSize: block,
      policy: met.policy,
      maxLoras: metrics.maxLoras ?? maxLoras,
      maxLoraRank,
    };
  }

  #become(state: ReplicaState, why: string | null): void {
    this.#problem = why;
    // A server that was never there is still to come.
    const next = state !== "ready" && this.#state === "starting" ? "starting" : state;
    if (next !== this.#state) {
      this.#notice(`an engine is ${next}`, { engine: this.name, ...(why === null ? {} : { why }) });
    }
    this.#state = next;
    if (next === "away") this.#loseAll(why ?? "it is unreachable");
    this.onChange?.();
  }

  #loseAll(why: string): void {
    for (const running of [...this.#running]) running.lose(why);
  }
}
