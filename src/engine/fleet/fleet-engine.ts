// Several engines behind the Engine contract. The parts: dispatcher.ts decides who runs where and when, fleet-run.ts
// follows a request through the deaths of replicas, adapter-fleet.ts keeps adapters on all of them.

import type { AdapterInfo } from "../../model/lora/adapter-host.ts";
import type { Engine, EngineStats, GenerateRequest, Generation, ModelInfo, ReplicaFacts } from "../contract.ts";
import { DEFAULT_SCHEDULING, rankOf } from "../scheduling.ts";
import { STAT_NAMES, StatCells } from "../stats.ts";
import { AdapterFleet } from "./adapter-fleet.ts";
import { Dispatcher } from "./dispatcher.ts";
import { FleetRun, type RunContext } from "./fleet-run.ts";
import { Member } from "./member.ts";
import type { Replica, ReplicaState } from "./replica.ts";

// The counters of a fleet: the sum over its replicas, and the mean use of their cache.

/** `waiting`: choices that no replica has yet. */
function sumStats(members: readonly Member[], waiting: number): EngineStats {
  const total = { ...new StatCells().read(), waiting };
  for (const member of members) {
    const stats = statsOf(member);
    for (const name of STAT_NAMES) total[name] += stats[name];
    const { bounds, counts, sum } = total.stepTokens;
    total.stepTokens = {
      bounds,
      counts: counts.map((count, i) => count + stats.stepTokens.counts[i]!),
      sum: sum + stats.stepTokens.sum,
    };
  }
  total.kvUsage /= members.length;
  return total;
}

/** A replica's own numbers, or what was sent to it and came back. */
function statsOf({ replica, choices, counts }: Member): EngineStats {
  if (replica.stats !== undefined) return replica.stats();
  const { promptTokens, generatedTokens, prefixHitTokens } = counts;
  const empty = new StatCells().read();
  return {
    ...empty,
    running: choices,
    promptTokens,
    generatedTokens,
    prefixQueries: promptTokens,
    prefixHits: prefixHitTokens,
  };
}

export interface FleetOptions {
  /** Computes version and rank of an adapter from its files. Rejects with a message for the user. */
  readAdapter: (folder: string) => Promise<AdapterInfo>;
  /** How long a request may wait while no replica is ready. */
  queueTimeoutMs: number;
  /** Whether replicas keep what they computed for the next request. */
  prefixCaching: boolean;
  /** Called with errors that no caller sees. */
  onFault: (error: Error) => void;
  /** Called after a replica's state changed. */
  onState?: (name: string, state: ReplicaState) => void;
}

export class FleetEngine implements Engine {
  readonly #members: readonly Member[];
  readonly #options: FleetOptions;
  readonly #adapters: AdapterFleet;
  readonly #dispatcher: Dispatcher;
  readonly #context: RunContext;
  readonly #runs = new Set<FleetRun>();
  #info: ModelInfo | null = null;
  #onFirstInfo: () => void = () => {};
  #closed = false;

  private constructor(replicas: readonly Replica[], options: FleetOptions) {
    this.#members = replicas.map((replica) => new Member(replica));
    this.#options = options;
    const { readAdapter, onFault, queueTimeoutMs, prefixCaching } = options;
    const limits = () => this.info;
    this.#adapters = new AdapterFleet(this.#members, { readAdapter, onFault, limits, timeoutMs: queueTimeoutMs });
    this.#dispatcher = new Dispatcher(this.#members, this.#adapters, { timeoutMs: queueTimeoutMs, prefixCaching });
    this.#context = {
      dispatcher: this.#dispatcher,
      adapters: this.#adapters,
      onFault,
      onEnd: (run) => this.#runs.delete(run),
    };
    for (const member of this.#members) this.#watch(member);
  }

  /** Takes the replicas over. Resolves when one of them is ready, or has been. */
  static async start(replicas: readonly Replica[], options: FleetOptions): Promise<FleetEngine> {
    const engine = new FleetEngine(replicas, options);
    engine.#describe();
    if (engine.#info === null) {
      await new Promise<void>((resolve) => {
        engine.#onFirstInfo = resolve;
      });
    }
    return engine;
  }

  get info(): ModelInfo {
    return this.#info!; // set before `start` resolves
  }

  generate(request: GenerateRequest): Generation {
    if (!Number.isInteger(request.n) || request.n < 1) {
      throw new RangeError(`n must be a positive integer: ${request.n}`);
    }
    const rank = rankOf(request.priority, performance.now(), DEFAULT_SCHEDULING);
    const run = new FleetRun(request, rank, this.#context);
    if (this.#closed) {
      run.stream.fail("the engine is closed");
      return run.stream;
    }
    this.#runs.add(run);
    run.start();
    return run.stream;
  }

  loadAdapter(folder: string): Promise<AdapterInfo> {
    return this.#adapters.load(folder);
  }

  unloadAdapter(version: string): Promise<void> {
    return this.#adapters.unload(version);
  }

  stats(): EngineStats {
    return sumStats(this.#members, this.#dispatcher.waiting);
  }

  replicas(): ReplicaFacts[] {
    return this.#members.map((member) => member.facts());
  }

  /** Whether a replica is ready. */
  healthy(): boolean {
    return !this.#closed && this.#members.some(({ replica }) => replica.state === "ready");
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const run of [...this.#runs]) run.stream.abort();
    this.#dispatcher.close();
    await Promise.all(this.#members.map(({ replica }) => replica.close()));
  }

  #watch(member: Member): void {
    const { replica } = member;
    let last = replica.state;
    replica.onChange = () => {
      if (this.#closed) return;
      const { state, name } = replica;
      const changed = state !== last;
      last = state;
      if (changed) this.#options.onState?.(name, state);
      const restarted = member.noticeRestart();
      if (changed || restarted) {
        this.#describe();
        void this.#adapters.catchUp(member, restarted);
      }
      this.#dispatcher.serve();
    };
  }

  /** What every replica that has been ready can do. */
  #describe(): void {
    const infos = this.#members.flatMap(({ replica }) => replica.info ?? []);
    if (infos.length === 0) return;
    const least = (pick: (info: ModelInfo) => number) => Math.min(...infos.map(pick));
    this.#info = {
      ...infos[0]!,
      vocabSize: least((info) => info.vocabSize),
      maxModelLen: least((info) => info.maxModelLen),
      cacheTokens: infos.reduce<number | null>(
        (sum, { cacheTokens }) => (sum === null || cacheTokens === null ? null : sum + cacheTokens),
        0,
      ),
      policy: infos.every(({ policy }) => policy === "priority") ? "priority" : "fcfs",
      maxLoras: least((info) => info.maxLoras),
      maxLoraRank: least((info) => info.maxLoraRank),
    };
    this.#onFirstInfo();
  }
}
