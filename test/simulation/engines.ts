// Engines of the simulation: the real scheduler, caches and loop over the model of model.ts, inside a server or as processes
// of their own behind a link that is slow and breaks. A link keeps the order of a stream, as TCP does.

import { AdapterManager } from "../../src/api/models/adapter-manager.ts";
import { ModelRegistry } from "../../src/api/models/model-registry.ts";
import { AdapterSlots } from "../../src/engine/adapter-slots.ts";
import type { EngineOutput, EngineStats, GenerateRequest, Generation, ModelInfo } from "../../src/engine/contract.ts";
import type { Replica, ReplicaLoad, ReplicaState } from "../../src/engine/fleet/replica.ts";
import type { HttpClient, Reply } from "../../src/engine/remote/http-client.ts";
import { RemoteAdapters } from "../../src/engine/remote/remote-adapters.ts";
import { adapterName } from "../../src/engine/remote/vllm-dialect.ts";
import type { SchedulingOptions } from "../../src/engine/scheduling.ts";
import { GenerationStream } from "../../src/engine/thread/generation-stream.ts";
import { errorEnvelope, toServiceError } from "../../src/errors/service-error.ts";
import { InProcessEngine } from "../support/in-process-engine.ts";
import { type ModelOptions, modelHost } from "./model.ts";
import { Wire } from "./wire.ts";
import { Process, type World } from "./world.ts";

const LOST = { reason: "error", stopReason: null, message: "simulated: the connection broke", fault: "lost" } as const;

export interface EngineOptions extends ModelOptions {
  scheduling: Partial<SchedulingOptions>;
}

/** An engine of the current process. */
export function newEngine(world: World, options: EngineOptions): InProcessEngine {
  const { scheduling } = options;
  const onFault = (error: Error) => world.say(`engine: ${error.message}`);
  return new InProcessEngine(modelHost(world, options), { scheduling, onFault });
}

/** A server that only serves the base model and the adapters that others load there. It can die, and starts again. */
export class EngineServer {
  readonly name: string;
  process: Process;
  engine: InProcessEngine;
  starts = 1;
  #slots!: AdapterSlots;
  #registry!: ModelRegistry;
  #adapters!: AdapterManager;
  readonly #world: World;
  readonly #options: EngineOptions;

  constructor(name: string, world: World, options: EngineOptions) {
    this.name = name;
    this.#world = world;
    this.#options = options;
    [this.process, this.engine] = this.#start();
  }

  restart(): void {
    this.starts++;
    [this.process, this.engine] = this.#start();
  }

  /** What it answers over HTTP. */
  async answer(path: string, body: { lora_name: string; lora_path?: string } | null): Promise<Reply> {
    try {
      if (path === "/v1/load_lora_adapter") {
        await this.#adapters.load({ name: body!.lora_name, path: body!.lora_path!, inPlace: false });
      } else if (path === "/v1/unload_lora_adapter") await this.#adapters.unload(body!.lora_name);
      else if (path !== "/v1/engine") throw new Error(`the simulation has no ${path}`);
      return { status: 200, text: JSON.stringify({ adapters: this.#listed() }) };
    } catch (error) {
      const refused = toServiceError(error);
      return { status: refused.status, text: JSON.stringify(errorEnvelope(refused)) };
    }
  }

  /** `front`: the server that asks. */
  async *generate(
    front: string,
    request: GenerateRequest,
    begun: (generation: Generation) => void,
  ): AsyncGenerator<EngineOutput> {
    const { adapter } = request;
    const named = adapter === null ? null : this.#registry.adapter(adapterName(front, adapter));
    if (named === undefined) {
      const finish = { ...LOST, message: "simulated: no such model", fault: "unloaded" } as const;
      for (let index = 0; index < request.n; index++) yield { type: "tokens", index, tokens: [], finish };
      return;
    }
    const release = named?.lease() ?? (() => {});
    try {
      const generation = this.engine.generate(request);
      begun(generation);
      yield* generation;
    } finally {
      release();
    }
  }

  #listed(): { name: string; idle_seconds: number }[] {
    const idle = new Map(this.#slots.list().map(({ version, idleMs }) => [version, idleMs / 1000]));
    return this.#registry.adapters().map(({ name, version }) => ({ name, idle_seconds: idle.get(version) ?? 0 }));
  }

  #start(): [Process, InProcessEngine] {
    const world = this.#world;
    const process = new Process(this.name);
    world.mortal.add(process);
    process.onDeath(() => {
      world.mortal.delete(process);
      world.at(world.outside, world.chance.between(50, 2_000), `${this.name} starts`, () => this.restart());
    });
    const { current } = world;
    world.current = process;
    try {
      const engine = newEngine(world, this.#options);
      this.#slots = new AdapterSlots(engine);
      this.#registry = new ModelRegistry(["tiny"], "");
      this.#adapters = new AdapterManager(this.#slots, this.#registry);
      return [process, engine];
    } finally {
      world.current = current;
    }
  }
}

const PROBE_MS = 500;
/** A replica that does not answer for so long is away. */
const SILENCE_MS = 2_000;

export interface LinkFaults {
  /** How likely a message finds that the connection is broken. */
  broken: number;
  /** How likely nobody is told of it: the other side is just silent. */
  silent: number;
  slowMs: number;
}

export interface LinkOptions {
  maxInFlight: number;
  /** Adapters that this server may have there: others have theirs. */
  maxLoras: number;
  link: LinkFaults;
}

/** What a server sees of an engine on another machine. */
export class LinkedReplica implements Replica {
  readonly name: string;
  readonly maxInFlight: number;
  onChange: (() => void) | null = null;
  state: ReplicaState = "starting";
  info: ModelInfo | null = null;
  identity = "";
  load: ReplicaLoad | null = null;
  /** No message passes before. */
  cutUntil = 0;
  readonly #world: World;
  readonly #server: EngineServer;
  readonly #faults: LinkFaults;
  readonly #maxLoras: number;
  readonly #adapters: RemoteAdapters;
  readonly #closed = new AbortController();
  readonly #own: Process;
  readonly #streams = new Set<(reason: string) => void>();
  #heardAt: number;
  #timer: NodeJS.Timeout | null = null;

  /** Of the current process. */
  constructor(world: World, server: EngineServer, { maxInFlight, maxLoras, link }: LinkOptions) {
    this.#world = world;
    this.#maxLoras = maxLoras;
    this.#server = server;
    this.#faults = link;
    this.#own = world.current;
    this.name = server.name;
    this.maxInFlight = maxInFlight;
    this.#heardAt = world.now;
    const client = { whole: (_method: string, path: string, sent: { body?: unknown }) => this.#whole(path, sent.body) };
    const notice = (message: string) => world.say(`${this.name}: ${message}`);
    this.#adapters = new RemoteAdapters(client as unknown as HttpClient, this.#own.name, notice);
    this.#timer = setInterval(() => this.#probe(), PROBE_MS);
    this.#probe();
  }

  generate(request: GenerateRequest): Generation {
    const world = this.#world;
    const server = this.#server;
    const { process } = server;
    const [there, back] = [
      new Wire(world, process, this.#faults.slowMs),
      new Wire(world, this.#own, this.#faults.slowMs),
    ];
    let inner: Generation | null = null;
    let [isOpen, isBroken] = [true, false];
    const stream = new GenerationStream(request.n, (index) => {
      there.send("stop", () => (index === null ? inner?.abort() : inner?.stop(index)));
      if (index === null) close();
    });
    const close = () => {
      isOpen = false;
      this.#streams.delete(lose);
    };
    const lose = (reason: string) => {
      if (!isOpen) return;
      close();
      for (let index = 0; index < request.n; index++) {
        if (stream.isLive(index))
          stream.push({ type: "tokens", index, tokens: [], finish: { ...LOST, message: reason } });
      }
      // the engine hears of it too, some time
      there.send("gone", () => inner?.abort());
    };
    this.#streams.add(lose);
    const pass = (output: EngineOutput) => {
      if (isBroken) return;
      if (this.#breaks()) {
        isBroken = true;
        return this.#break(lose);
      }
      back.send("output", () => {
        if (!isOpen) return;
        stream.push(output);
        if (stream.ended) close();
      });
    };
    const follow = async () => {
      const begun = (generation: Generation) => {
        inner = generation;
      };
      for await (const output of server.generate(this.#own.name, request, begun)) pass(output);
    };
    if (this.#breaks() || !process.alive) this.#break(lose);
    else there.send("generate", () => void follow());
    return stream;
  }

  loadAdapter(version: string, folder: string): Promise<void> {
    return this.#adapters.load(version, folder, this.#closed.signal);
  }

  unloadAdapter(version: string): Promise<void> {
    return this.#adapters.unload(version, this.#closed.signal);
  }

  stats(): EngineStats {
    return this.#server.engine.stats();
  }

  async close(): Promise<void> {
    this.#closed.abort();
    if (this.#timer) clearInterval(this.#timer);
    for (const lose of [...this.#streams]) lose("simulated: the server closes");
  }

  /** A request over HTTP and its whole reply. */
  #whole(path: string, body: unknown): Promise<Reply> {
    return this.#ask(path, (server) => server.answer(path, (body ?? null) as Parameters<EngineServer["answer"]>[1]));
  }

  /** A call and its answer. What has no answer fails after a while. */
  #ask<R>(label: string, work: (server: EngineServer) => Promise<R>): Promise<R> {
    const world = this.#world;
    const { slowMs } = this.#faults;
    const { process } = this.#server;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("simulated: no answer")), 5_000);
      const answer = (run: () => void) => {
        if (!process.alive || this.#breaks()) return;
        new Wire(world, this.#own, slowMs).send(`${label} answered`, () => {
          clearTimeout(timer);
          run();
        });
      };
      if (this.#breaks()) return;
      new Wire(world, process, slowMs).send(label, () => {
        work(this.#server).then(
          (result) => answer(() => resolve(result)),
          (error: Error) => answer(() => reject(error)),
        );
      });
    });
  }

  #probe(): void {
    const seen = { info: null as ModelInfo | null, identity: "", requests: 0 };
    this.#ask("probe", async ({ engine, starts }) => {
      const { running, waiting } = engine.stats();
      Object.assign(seen, {
        info: { ...engine.info, maxLoras: this.#maxLoras },
        identity: String(starts),
        requests: running + waiting,
      });
    }).then(
      () => this.#heard(seen),
      () => this.#silent(),
    );
    this.#silent();
  }

  #heard({ info, identity, requests }: { info: ModelInfo | null; identity: string; requests: number }): void {
    this.#heardAt = this.#world.now;
    this.load = { requests, at: performance.now() };
    if (this.identity !== identity && this.identity !== "") this.#loseAll("simulated: the engine was restarted");
    this.info = info;
    this.identity = identity;
    this.state = "ready";
    this.onChange?.();
  }

  #silent(): void {
    if (this.state !== "ready" || this.#world.now - this.#heardAt < SILENCE_MS) return;
    this.state = "away";
    this.#loseAll("simulated: the engine is silent");
    this.onChange?.();
  }

  #loseAll(reason: string): void {
    for (const lose of [...this.#streams]) lose(reason);
  }

  #breaks(): boolean {
    const world = this.#world;
    if (world.now < this.cutUntil) return true;
    if (!world.fails(this.#faults.broken)) return false;
    world.count("link breaks");
    return true;
  }

  /** The server is told at once, or finds out when it has heard nothing for long. */
  #break(lose: (reason: string) => void): void {
    const world = this.#world;
    const ms = world.fails(this.#faults.silent) ? SILENCE_MS + 3_000 : world.chance.between(0, 50);
    world.at(this.#own, ms, "connection lost", () => lose("simulated: the connection broke"));
  }
}
