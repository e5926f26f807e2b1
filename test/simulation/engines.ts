// Engines of the simulation: the real scheduler, caches and loop over the model of model.ts, inside a server or as processes
// of their own behind a link that is slow and breaks. A link keeps the order of a stream, as TCP does.

import type { EngineOutput, GenerateRequest, Generation, ModelInfo } from "../../src/engine/contract.ts";
import type { Replica, ReplicaLoad, ReplicaState } from "../../src/engine/fleet/replica.ts";
import type { SchedulingOptions } from "../../src/engine/scheduling.ts";
import { GenerationStream } from "../../src/engine/thread/generation-stream.ts";
import { InProcessEngine } from "../fakes/in-process-engine.ts";
import { type ModelOptions, modelHost } from "./model.ts";
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

/** A process with an engine. It can die, and starts again as another one. */
export class EngineServer {
  readonly name: string;
  process: Process;
  engine: InProcessEngine;
  starts = 1;
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

/** One direction of a connection: what is sent arrives later, in order. */
class Wire {
  readonly #world: World;
  readonly #to: Process;
  readonly #slowMs: number;
  #last = 0;

  constructor(world: World, to: Process, slowMs: number) {
    this.#world = world;
    this.#to = to;
    this.#slowMs = slowMs;
  }

  send(label: string, run: () => void): void {
    const world = this.#world;
    this.#last = Math.max(this.#last, world.now + world.chance.between(0, 10 * this.#slowMs) / 10);
    world.at(this.#to, this.#last - world.now, label, run);
  }
}

export interface LinkFaults {
  /** How likely a message finds that the connection is broken. */
  broken: number;
  /** How likely nobody is told of it: the other side is just silent. */
  silent: number;
  slowMs: number;
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
  readonly #own: Process;
  readonly #streams = new Set<(reason: string) => void>();
  #heardAt: number;
  #timer: NodeJS.Timeout | null = null;

  /** Of the current process. */
  constructor(world: World, server: EngineServer, maxInFlight: number, faults: LinkFaults) {
    this.#world = world;
    this.#server = server;
    this.#faults = faults;
    this.#own = world.current;
    this.name = server.name;
    this.maxInFlight = maxInFlight;
    this.#heardAt = world.now;
    this.#timer = setInterval(() => this.#probe(), PROBE_MS);
    this.#probe();
  }

  generate(request: GenerateRequest): Generation {
    const world = this.#world;
    const { process, engine } = this.#server;
    const [there, back] = [
      new Wire(world, process, this.#faults.slowMs),
      new Wire(world, this.#own, this.#faults.slowMs),
    ];
    let inner: Generation | null = null;
    let isOpen = true;
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
      if (this.#breaks()) return this.#break(lose);
      back.send("output", () => {
        if (!isOpen) return;
        stream.push(output);
        if (stream.ended) close();
      });
    };
    const follow = async () => {
      inner = engine.generate(request);
      for await (const output of inner) pass(output);
    };
    if (this.#breaks() || !process.alive) this.#break(lose);
    else there.send("generate", () => void follow());
    return stream;
  }

  loadAdapter(version: string, folder: string): Promise<void> {
    return this.#ask("load", async ({ engine }) => {
      const loaded = await engine.loadAdapter(folder);
      if (loaded.version !== version) throw new Error(`${folder} holds ${loaded.version}`);
    });
  }

  unloadAdapter(version: string): Promise<void> {
    return this.#ask("unload", ({ engine }) => engine.unloadAdapter(version));
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
        if (this.#breaks()) return;
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
      Object.assign(seen, { info: engine.info, identity: String(starts), requests: running + waiting });
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
