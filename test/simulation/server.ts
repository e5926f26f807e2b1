// A server of the simulation: admission, the engine or a fleet of them, adapter slots, training with its jobs and leases,
// and a heartbeat, put together as src/app does. Its requests come as calls instead of HTTP, with the same errors.

import { setMaxListeners } from "node:events";
import { Admission } from "../../src/api/generation/admission.ts";
import { ChoiceOutput } from "../../src/api/generation/choice-output.ts";
import { RunningGeneration } from "../../src/api/generation/generation.ts";
import { LiveRequests } from "../../src/api/generation/live-requests.ts";
import type { Service } from "../../src/api/service.ts";
import { fromTraining } from "../../src/api/training/routes.ts";
import { Heartbeat } from "../../src/app/training.ts";
import { AdapterSlots } from "../../src/engine/adapter-slots.ts";
import type { Engine, GenerateRequest } from "../../src/engine/contract.ts";
import { FleetEngine } from "../../src/engine/fleet/fleet-engine.ts";
import { ServiceError, toServiceError } from "../../src/errors/service-error.ts";
import { loadPeft } from "../../src/model/lora/peft.ts";
import { createLog, type Log } from "../../src/observe/log.ts";
import { ServerTable } from "../../src/store/tables/servers.ts";
import { BaseModels, limitsOf } from "../../src/training/base-models.ts";
import { leaseTimes } from "../../src/training/context.ts";
import { SharedFolder } from "../../src/training/files/shared-folder.ts";
import { StepFolders } from "../../src/training/files/step-folders.ts";
import { TrainingService } from "../../src/training/service.ts";
import { toyEncoder } from "../support/toy-encoder.ts";
import type { Cluster } from "./cluster.ts";
import { LinkedReplica, newEngine } from "./engines.ts";
import { newTrainer } from "./trainer.ts";
import { Process } from "./world.ts";

export interface Reply {
  status: number;
  /** Seconds; null = it says nothing. */
  retryAfter: number | null;
  message: string;
  // biome-ignore lint/suspicious/noExplicitAny: the clients read many shapes
  body: any;
}

/** The step that answered, and what it said. */
export interface Said {
  step: number | null;
  tokens: number[][];
}

/** What a log says of what rarely happens. */
const RARE = {
  "job taken over": "training job resumed",
  "job dropped": "training job dropped",
  "job put back": "training job put back",
  "event recorded later": "cannot be recorded yet",
  "files cleared": "removed files that belong to nothing",
};

export class SimulatedServer {
  readonly name: string;
  readonly process: Process;
  /** It has started, and does not stop yet. */
  serves = false;
  training!: TrainingService;
  admission!: Admission;
  links: LinkedReplica[] = [];
  /** Requests in the engine. */
  readonly open = new Set<string>();
  readonly #cluster: Cluster;
  readonly #cut = new AbortController();
  readonly #live = new LiveRequests();
  #engine!: Engine;
  #heartbeat!: Heartbeat;

  constructor(name: string, cluster: Cluster) {
    this.name = name;
    this.#cluster = cluster;
    setMaxListeners(0, this.#cut.signal);
    this.process = new Process(name);
    this.process.skewMs = cluster.plan.alone ? 0 : cluster.world.chance.between(-20_000, 20_000);
  }

  /** In its own process. Throws what keeps a server from starting. */
  async start(): Promise<void> {
    const { world, plan, database, disk, base } = this.#cluster;
    const log = this.#log();
    const store = database.connect();
    this.#engine = this.#cluster.witness.watch(await this.#newEngine(), this.open);
    const engine = this.#engine;
    const slots = new AdapterSlots(engine);
    const trainer = newTrainer(world, plan.trainer, this.#cluster.lineage);
    const limits = { positionsPerBlock: 16, maxSequenceLength: 64, activationBytes: 2 ** 30, rank: 2 };
    const root = `${disk.root}/training`;
    this.admission = new Admission({ slots: plan.slots, queue: plan.queue });
    this.training = new TrainingService({
      store,
      workspace: new StepFolders(root, new SharedFolder(root, plan.alone ? 0 : 10_000)),
      bases: new BaseModels([
        {
          ...{ name: "tiny", aliases: [], folder: base.folder, weights: "float32" as const },
          limits: limitsOf(trainer, { baseModel: base.folder, weights: "float32", ...limits }),
          ...{ maxSequenceLength: 64, encoder: toyEncoder, engine, slots },
        },
      ]),
      trainer,
      log,
      server: { id: `${this.name}-${world.events}`, runsJobs: true, alone: plan.alone },
      times: leaseTimes(plan.leaseMs),
      lora: { rank: 2, alpha: 4 },
      maxParallelJobs: plan.maxParallelJobs,
      stepGraceMs: plan.stepGraceMs,
      maxStepsPerModel: plan.maxStepsPerModel,
      maxOpenJobs: 1000,
      maxBytesPerOwner: plan.maxBytesPerOwner,
      keepRecords: { bytes: 2 ** 30, ms: 86_400_000 },
      threads: 1,
      activationBytes: 2 ** 30,
      isServedName: () => false,
      offersRuns: false,
    });
    await this.training.start();
    const facts = { models: ["tiny"], replicas: [] };
    this.#heartbeat = new Heartbeat(
      new ServerTable(store),
      () => ({ id: this.name, role: "all", address: this.name, version: "0", facts }),
      log,
    );
    await this.#heartbeat.start();
    this.serves = true;
    world.say("serves");
  }

  /** As SIGTERM does: what is open ends first. */
  async stop(): Promise<void> {
    this.serves = false;
    this.admission.drain();
    const late = setTimeout(() => this.#cut.abort(), 2_000);
    await this.admission.idle();
    clearTimeout(late);
    await this.#heartbeat.close();
    await this.training.close();
    await this.#engine.close();
    this.#cluster.world.say("has stopped");
  }

  /** Tells what the engines and the fleet went through. */
  countRare(): void {
    const { world } = this.#cluster;
    const { preemptions, prefixHits } = this.#engine.stats();
    world.reach("preemption", preemptions);
    world.reach("token from the prefix cache", prefixHits);
    for (const { resumes } of this.#engine.replicas?.() ?? []) world.reach("reply resumed elsewhere", resumes);
  }

  /** What is left open in a server that has nothing to do. */
  leftOpen(): string[] {
    const { running, waiting, kvUsage } = this.#engine.stats();
    const busy = (this.#engine.replicas?.() ?? []).reduce((sum, { inFlight }) => sum + inFlight, 0);
    const counts = { requests: this.admission.requests, choices: this.admission.active, generations: this.open.size };
    const left = { ...counts, running, waiting, kvUsage, busy, live: this.#live.all().length };
    return Object.entries(left).flatMap(([what, count]) =>
      count === 0 ? [] : [`${this.name}: ${count} ${what} left`],
    );
  }

  /** Asks a policy, as api/generation/answer.ts does. null: the base model. */
  async ask(name: string | null, request: GenerateRequest, owner: string, gone: AbortSignal): Promise<Said> {
    const leave = this.admission.enter(request.n);
    const principal = { id: owner, workspace: { id: owner } } as Parameters<LiveRequests["enter"]>[1];
    const live = this.#live.enter(String(this.open.size), principal);
    live.choices = request.n;
    let release = () => {};
    try {
      const lease = name === null ? null : await this.training.policies.acquire(name, owner, () => gone);
      if (name !== null && lease === null) throw notFound();
      if (lease) release = lease.release;
      const choices = Array.from({ length: request.n }, (_, index) => newChoice(index));
      const service = this.#service();
      const bound = { ...request, adapter: lease?.adapter ?? null };
      const parts = { request: bound, choices, arrivedAt: performance.now(), clientGone: gone, live, held: null };
      const tokens: number[][] = choices.map(() => []);
      for await (const output of new RunningGeneration(service, parts).outputs()) {
        if (output.type === "delta") tokens[output.index]!.push(...output.tokenIds);
      }
      return { step: lease?.step ?? null, tokens };
    } finally {
      this.#live.leave(live);
      release();
      leave();
    }
  }

  async #newEngine(): Promise<Engine> {
    const { world, plan, base, engines } = this.#cluster;
    if (engines.length === 0) return newEngine(world, plan.engine);
    this.links = engines.map((server) => new LinkedReplica(world, server, plan));
    return FleetEngine.start(this.links, {
      readAdapter: async (folder) => {
        const { version, rank } = loadPeft(folder, base.config);
        return { version, rank };
      },
      queueTimeoutMs: 10_000,
      prefixCaching: true,
      onFault: (error) => world.say(`fleet: ${error.message}`),
    });
  }

  /** What a run needs of it. */
  #service(): Service {
    const metrics = { requestEnded: () => {}, interTokenLatency: () => {} };
    const models = { baseName: "tiny" };
    return {
      engine: this.#engine,
      models,
      metrics,
      live: this.#live,
      cutSignal: this.#cut.signal,
    } as unknown as Service;
  }

  #log(): Log {
    const { world } = this.#cluster;
    const write = (line: string) => {
      world.say(line.trimEnd());
      for (const [what, words] of Object.entries(RARE)) if (line.includes(words)) world.reach(what);
    };
    return createLog({ level: "info", format: "text", write, now: () => new Date(0) });
  }
}

/** A reply to a client, whatever was thrown. */
export function replyOf(error: unknown): Reply {
  const { status, retryAfter, message, cause } = toServiceError(fromTraining(error));
  const why = status === 500 && cause instanceof Error ? `${message} (${cause.message})` : message;
  return { status, retryAfter, message: why, body: null };
}

function notFound(): ServiceError {
  return new ServiceError("model_not_found", "there is no such policy");
}

/** Texts are one letter per token; 9 is a stop string. */
function newChoice(index: number): ChoiceOutput {
  const text = {
    push: (id: number) => ({ delta: "x", matched: id === 9 ? "9" : null, decoded: "x" }),
    finish: () => "",
  };
  const parser = { push: () => [], finish: () => [] };
  return new ChoiceOutput({ index, text, parser, thoughtMeter: null, logprobs: null } as never);
}
