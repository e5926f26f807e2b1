// A replica on the test's own thread: a real engine over a fake model that can die, come back, lose streams and forget
// adapters.

import type { GenerateRequest, Generation, ModelInfo } from "../../src/engine/contract.ts";
import type { Replica, ReplicaLoad, ReplicaState } from "../../src/engine/fleet/replica.ts";
import { GenerationStream } from "../../src/engine/thread/generation-stream.ts";
import { ChoiceConstraints } from "./choice-constraint.ts";
import { FakeAdapters } from "./fake-adapters.ts";
import { FakeRunner, type FakeRunnerOptions, hashRow } from "./fake-runner.ts";
import { InProcessEngine } from "./in-process-engine.ts";

export interface FakeReplicaOptions {
  maxInFlight?: number;
  maxLoras?: number;
  runner?: Partial<FakeRunnerOptions>;
  /** Whether a choice is lost after this many tokens here. */
  cut?: (tokens: number, request: GenerateRequest) => boolean;
}

interface Open {
  stream: GenerationStream;
  live: Set<number>;
  inner: Generation;
}

export class FakeReplica implements Replica {
  readonly name: string;
  readonly maxInFlight: number;
  load: ReplicaLoad | null = null;
  onChange: (() => void) | null = null;
  state: ReplicaState = "ready";
  /** Every request it got. */
  readonly requests: GenerateRequest[] = [];
  readonly loads: string[] = [];
  cut: NonNullable<FakeReplicaOptions["cut"]>;
  /** Loads wait for it. */
  gate: Promise<unknown> = Promise.resolve();
  /** Loads that run now, and the most that ran at the same time. */
  loading = 0;
  mostLoading = 0;
  readonly #options: FakeReplicaOptions;
  readonly #open = new Set<Open>();
  #adapters!: FakeAdapters;
  #engine!: InProcessEngine;
  #starts = 0;

  constructor(name: string, options: FakeReplicaOptions = {}) {
    this.name = name;
    this.maxInFlight = options.maxInFlight ?? 8;
    this.cut = options.cut ?? (() => false);
    this.#options = options;
    this.#start();
  }

  get info(): ModelInfo {
    return this.#engine.info;
  }

  get identity(): string {
    return String(this.#starts);
  }

  /** Choices that run here. */
  get running(): number {
    return [...this.#open].reduce((sum, { live }) => sum + live.size, 0);
  }

  get adapters(): readonly string[] {
    return this.#adapters.slots.filter((slot) => slot !== null);
  }

  /** Every stream breaks, now. `told`: the fleet learns at once that it is unreachable. */
  die(told = true): void {
    this.state = "away";
    for (const open of [...this.#open]) this.#lose(open, [...open.live]);
    if (told) this.onChange?.();
  }

  /** Comes back, as a new process or as the one it was. */
  revive(restarted = true): void {
    if (restarted) this.#start();
    this.state = "ready";
    this.onChange?.();
  }

  /** Forgets its adapters without telling. */
  forgetAdapters(): void {
    this.#adapters.slots.fill(null);
  }

  generate(request: GenerateRequest): Generation {
    this.requests.push(request);
    const live = new Set(Array.from({ length: request.n }, (_, index) => index));
    const inner = this.#engine.generate(request);
    const stream = new GenerationStream(request.n, (index) => {
      if (index === null) {
        inner.abort();
        this.#open.delete(open);
      } else {
        inner.stop(index);
        live.delete(index);
      }
    });
    const open: Open = { stream, live, inner };
    this.#open.add(open);
    if (this.state !== "ready" || this.cut(0, request)) this.#lose(open, [...live]);
    void this.#follow(open, request);
    return stream;
  }

  async loadAdapter(version: string, folder: string): Promise<void> {
    this.loading++;
    this.mostLoading = Math.max(this.mostLoading, this.loading);
    try {
      await this.gate;
      if (this.state !== "ready") throw new Error("it is not there");
      const loaded = await this.#engine.loadAdapter(folder);
      this.loads.push(version);
      if (loaded.version !== version) throw new Error(`${folder} holds ${loaded.version}`);
    } finally {
      this.loading--;
    }
  }

  async unloadAdapter(version: string): Promise<void> {
    await this.#engine.unloadAdapter(version);
  }

  close(): Promise<void> {
    return this.#engine.close();
  }

  #start(): void {
    this.#starts++;
    this.#adapters = new FakeAdapters(this.#options.maxLoras);
    const runner = new FakeRunner({ row: hashRow, numBlocks: 256, ...this.#options.runner });
    const constraints = new ChoiceConstraints(256);
    this.#engine = new InProcessEngine(
      { runner, adapters: this.#adapters, constraints },
      { scheduling: { maxNumSeqs: 64 } },
    );
  }

  async #follow(open: Open, request: GenerateRequest): Promise<void> {
    const counts = new Array<number>(request.n).fill(0);
    for await (const output of open.inner) {
      if (output.type !== "tokens") {
        open.stream.push(output);
        continue;
      }
      const { index, finish } = output;
      if (!open.live.has(index)) continue;
      counts[index]! += output.tokens.length;
      const lost = this.cut(counts[index]!, request);
      if (finish !== null && !lost) open.live.delete(index);
      open.stream.push(lost ? { ...output, finish: null } : output);
      if (lost) this.#lose(open, [index]);
    }
    this.#open.delete(open);
  }

  #lose(open: Open, indexes: readonly number[]): void {
    const finish = { reason: "error", stopReason: null, message: "the connection broke", fault: "lost" } as const;
    for (const index of indexes) {
      open.live.delete(index);
      open.stream.push({ type: "tokens", index, tokens: [], finish });
    }
    if (open.live.size > 0) return;
    this.#open.delete(open);
    open.inner.abort();
  }
}
