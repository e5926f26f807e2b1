// The servers, engines, database and disk of a simulation, and what is told of a run before it begins: its plan. Each seed
// has other sizes, and only some kinds of faults, so that one fault does not hide what another would show.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ModelConfig, readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { ROOT } from "../cluster/member.ts";
import { Database, type DatabaseFaults, NO_FAULTS } from "./database.ts";
import type { Disk } from "./disk.ts";
import { type EngineOptions, EngineServer, type LinkFaults } from "./engines.ts";
import { SimulatedServer } from "./server.ts";
import type { Lineage, TrainerFaults } from "./trainer.ts";
import { Witness } from "./witness.ts";
import type { World } from "./world.ts";

export interface Plan {
  servers: number;
  /** One server on a file, instead of several on a database server. */
  alone: boolean;
  /** Engines on other machines; 0 = each server has one of its own. */
  engines: number;
  clients: number;
  /** How long things fail, in milliseconds. */
  ms: number;
  leaseMs: number;
  slots: number;
  queue: number;
  maxInFlight: number;
  /** Of one server. */
  maxLoras: number;
  maxParallelJobs: number;
  maxStepsPerModel: number;
  stepGraceMs: number;
  maxBytesPerOwner: number;
  deathRate: number;
  database: DatabaseFaults;
  link: LinkFaults;
  trainer: TrainerFaults;
  engine: EngineOptions;
  /** How likely a message of a client is lost or comes twice. */
  request: number;
  /** Weights of what happens to whole processes and machines. */
  accidents: Record<Accident, number>;
}

const ACCIDENTS = [
  "kill",
  "stop",
  "short pause",
  "pause past the lease",
  "database away",
  "disk full",
  "power failure",
  "engine killed",
  "link cut",
] as const;

export type Accident = (typeof ACCIDENTS)[number];

function planOf(world: World, config: ModelConfig): Plan {
  const { chance } = world;
  /** Each kind of fault is there in two of three seeds. */
  const some = (rate: number) => (chance.between(0, 2) > 0 ? rate * chance.pick([0.2, 1, 3]) : 0);
  const alone = chance.between(0, 2) === 0;
  const servers = alone ? 1 : chance.between(2, 3);
  const engines = chance.pick([0, 0, 1, 2, 3]);
  const database = {
    ...NO_FAULTS,
    slowMs: chance.pick([1, 5, 40]),
    ...(alone
      ? { full: some(0.003) }
      : { unavailable: some(0.005), again: some(0.03), unknown: some(0.01), hint: some(0.2) }),
  };
  const maxLoras = chance.between(1, 3);
  const positionsPerBlock = chance.pick([4, 8]);
  const impossible: Accident[] = alone ? ["pause past the lease", "database away"] : ["power failure"];
  if (engines === 0) impossible.push("engine killed", "link cut");
  const accidents = Object.fromEntries(ACCIDENTS.map((accident) => [accident, chance.pick([0, 1, 1, 3])]));
  for (const accident of impossible) accidents[accident] = 0;
  return {
    ...{ servers, alone, engines, database, accidents: accidents as Plan["accidents"] },
    clients: chance.between(2, 4),
    ms: chance.pick([10_000, 20_000, 40_000]),
    leaseMs: chance.pick([3_000, 6_000]),
    slots: chance.pick([2, 8]),
    queue: chance.pick([2, 16]),
    maxInFlight: chance.pick([2, 8]),
    maxLoras,
    maxParallelJobs: chance.between(1, 3),
    maxStepsPerModel: chance.pick([2, 4, 1000]),
    stepGraceMs: chance.pick([0, 2_000, 60_000]),
    maxBytesPerOwner: chance.pick([2 ** 40, 2 ** 40, 3 * 2 ** 20]),
    deathRate: some(0.0003),
    link: { broken: some(0.01), silent: some(0.3), slowMs: chance.pick([1, 10, 50]) },
    trainer: {
      ...{ crash: some(0.03), failure: some(0.01), hang: some(0.01), deaf: some(0.05) },
      stepMs: chance.pick([20, 300, 1500]),
    },
    engine: {
      config,
      // an engine of its own has room for the adapters of all servers
      maxLoras: maxLoras * (engines > 0 ? servers : 1),
      positionsPerBlock,
      // what the longest request needs, and little more
      numBlocks: 64 / positionsPerBlock + chance.pick([2, 8, 40]),
      failures: some(0.003),
      scheduling: {
        maxNumSeqs: chance.pick([2, 8]),
        maxNumBatchedTokens: chance.pick([8, 32, 256]),
        linkSize: chance.pick([null, positionsPerBlock / 2]),
        policy: chance.pick(["priority", "fcfs"]),
      },
    },
    request: some(0.01),
  };
}

export class Cluster {
  readonly world: World;
  readonly disk: Disk;
  readonly plan: Plan;
  readonly database: Database;
  readonly witness: Witness;
  readonly lineage: Lineage = new Map();
  readonly engines: EngineServer[];
  readonly base: { folder: string; config: ModelConfig };
  /** By place. A server that has died has another one in its place later. */
  readonly servers: SimulatedServer[] = [];
  /** No server starts again: it is the end. */
  isClosing = false;

  constructor(world: World, disk: Disk) {
    this.world = world;
    this.disk = disk;
    this.base = copyBase(disk);
    this.plan = planOf(world, this.base.config);
    this.database = new Database(world);
    this.database.faults = this.plan.database;
    this.witness = new Witness(world);
    this.engines = Array.from(
      { length: this.plan.engines },
      (_, i) => new EngineServer(`engine-${i + 1}`, world, this.plan.engine),
    );
    for (let place = 0; place < this.plan.servers; place++) this.launch(place);
  }

  /** A new process in this place. If it cannot start, it ends, and another one tries. */
  launch(place: number): void {
    const { world } = this;
    const server = new SimulatedServer(`server-${place + 1}`, this);
    this.servers[place] = server;
    const { process } = server;
    world.mortal.add(process);
    process.onDeath(() => {
      server.serves = false;
      world.mortal.delete(process);
      if (this.isClosing) return;
      world.at(world.outside, world.chance.between(20, 3_000), `${server.name} starts again`, () => this.launch(place));
    });
    world.at(process, 0, "start", () => {
      server.start().catch((error: unknown) => {
        world.say(`does not start: ${(error as Error).stack}`);
        if (!world.isFaulty) world.violation(`${server.name} does not start: ${(error as Error).message}`);
        process.die();
      });
    });
  }

  /** A server that stops in an orderly way; another process follows. */
  stop(place: number): void {
    const { world } = this;
    const server = this.servers[place]!;
    world.at(server.process, 0, "SIGTERM", () => {
      server.stop().then(
        () => server.process.die(),
        (error: unknown) => world.violation(`${server.name} does not stop: ${(error as Error).stack}`),
      );
    });
  }
}

/** What an operator has put on the disk: the checkpoint of the base model, and the folder for training. */
function copyBase(disk: Disk): Cluster["base"] {
  mkdirSync(`${disk.root}/training`);
  const from = join(ROOT, "test/fixtures/llama");
  const folder = `${disk.root}/base`;
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(from)) {
    if (/^(config\.json|model.*)$/.test(name)) writeFileSync(join(folder, name), readFileSync(join(from, name)));
  }
  disk.syncAll();
  return { folder, config: readModelConfig(folder) };
}
