// Engines of the simulation: the real scheduler, caches and loop over the model of model.ts, inside a server or as processes
// of their own behind a link that is slow and breaks. A link keeps the order of a stream, as TCP does.

import { AdapterSlots } from "../../src/engine/adapter-slots.ts";
import type { EngineOutput, EngineStats, GenerateRequest, Generation, ModelInfo } from "../../src/engine/contract.ts";
import type { Replica, ReplicaLoad, ReplicaState } from "../../src/engine/fleet/replica.ts";
import type { SchedulingOptions } from "../../src/engine/scheduling.ts";
import { GenerationStream } from "../../src/engine/thread/generation-stream.ts";
import { NoAdapterSlot } from "../../src/model/lora/adapter-host.ts";
import { InProcessEngine } from "../fakes/in-process-engine.ts";
import { type ModelOptions, modelHost } from "./model.ts";
import { Wire } from "./wire.ts";
import { Process, type World } from "./world.ts";

export interface EngineOptions extends ModelOptions {
  scheduling: Partial<SchedulingOptions>;
}

/** An engine of the current process. */
export function newEngine(world: World, options: EngineOptions): InProcessEngine {
  const { scheduling } = options;
  const onFault = (error: Error) => world.say(`engine: ${error.message}`);
  return new InProcessEngine(modelHost(world, options), { scheduling, onFault });
}

/** A process with an engine. It can die, and starts again as another one. Servers hold adapters there, as they do over HTTP. */
export class EngineServer {
  readonly name: string;
  process: Process;
  engine: InProcessEngine;
  starts = 1;
  #slots: AdapterSlots;
  /** Who holds which version: "server version". */
  #holds = new Set<string>();
  readonly #world: World;
  readonly #options: EngineOptions;

  constructor(name: string, world: World, options: EngineOptions) {
    this.name = name;
    this.#world = world;
    this.#options = options;
    [this.process, this.engine] = this.#start();
    this.#slots = new AdapterSlots(this.engine);
  }

  restart(): void {
    this.starts++;
    [this.process, this.engine] = this.#start();
    this.#slots = new AdapterSlots(this.engine);
    this.#holds = new Set();
  }

  /** `keeps`: the versions that this server wants. What it left when it died goes if there is no room. */
  async load(front: string, version: string, folder: string, keeps: ReadonlySet<string>): Promise<void> {
    if (this.#holds.has(`${front} ${version}`)) return;
    try {
      const loaded = await this.#slots.hold(folder);
      if (loaded.version !== version) throw new Error(`${folder} holds ${loaded.version}`);
      this.#holds.add(`${front} ${version}`);
    } catch (error) {
      const own = [...this.#holds].map((hold) => hold.split(" ")).filter(([holder]) => holder === front);
      const stale = own.find(([, held]) => !keeps.has(held!));
      if (!(error instanceof NoAdapterSlot) || stale === undefined) throw error;
      await this.unload(front, stale[1]!);
      await this.load(front, version, folder, keeps);
    }
  }

  async unload(front: string, version: string): Promise<void> {
    if (this.#holds.delete(`${front} ${version}`)) await this.#slots.drop(version);
  }

  async *generate(request: GenerateRequest, begun: (generation: Generation) => void): AsyncGenerator<EngineOutput> {
    const { adapter } = request;
    const isHeld = adapter === null || [...this.#holds].some((hold) => hold.endsWith(` ${adapter}`));
    const release = isHeld && adapter !== null ? this.#slots.leaseHeld(adapter) : () => {};
    try {
      const generation = this.engine.generate(request);
      begun(generation);
      yield* generation;
    } finally {
      release();
    }
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
      return [process, newEngine(world, this.#options)];
    } finally {
      world.current = current;
    }
  }
}

const LOST = { reason: "error", stopReason: null, message: "simulated: the connection broke", fault: "lost" } as const;

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
  /** Versions that this server wants there. */
  readonly #keeps = new Set<string>();
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
      for await (const output of server.generate(request, begun)) pass(output);
    };
    if (this.#breaks() || !process.alive) this.#break(lose);
    else there.send("generate", () => void follow());
    return stream;
  }

  loadAdapter(version: string, folder: string): Promise<void> {
    this.#keeps.add(version);
    return this.#ask("load", (server) => server.load(this.#own.name, version, folder, this.#keeps));
  }

  unloadAdapter(version: string): Promise<void> {
    this.#keeps.delete(version);
    return this.#ask("unload", (server) => server.unload(this.#own.name, version));
  }

  stats(): EngineStats {
    return this.#server.engine.stats();
  }

  async close(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    for (const lose of [...this.#streams]) lose("simulated: the server closes");
  }

  /** A call and its answer. What has no answer fails after a while. */
  #ask(label: string, work: (server: EngineServer) => Promise<void>): Promise<void> {
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
          () => answer(resolve),
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
