// One run of the simulation: a seed chooses the sizes, the faults and every delay. Things fail for a while; then they do not
// any more, everything settles, and the invariants must hold.

// first: before what it replaces something for
import "./stage.ts";

import { DISK_FULL } from "../../src/errors/faults.ts";
import { tablesOn } from "../../src/store/tables/tables.ts";
import { violations } from "../training-invariants/violations.ts";
import { causeAccidents } from "./accidents.ts";
import { Client } from "./client.ts";
import { Cluster, type Plan } from "./cluster.ts";
import { Disk } from "./disk.ts";
import { checkingBooks } from "./model.ts";
import { CAUSED, Requests } from "./requests.ts";
// before everything that it replaces something for
import { onStage } from "./stage.ts";
import { TRAINER_FAILED, weightsOf } from "./trainer.ts";
import { World } from "./world.ts";

export interface Report {
  seed: number;
  /** What is wrong, one sentence each. */
  wrong: string[];
  /** The same for the same seed. */
  digest: string;
  events: number;
  /** Milliseconds of the world's time. */
  ms: number;
  faults: Record<string, number>;
  /** How often the code under test did what it rarely does. */
  reached: Record<string, number>;
  jobs: Record<string, number>;
  actions: Record<string, number>;
  /** Replies compared with those of the same request alone, and their tokens. */
  replies: number;
  tokens: number;
  /** Policies whose replies were compared at the end. */
  comparedPolicies: number;
  plan: Plan;
  /** What happened last. */
  lines: string[];
}

/** Jobs that clients follow when the faults end must end in this time. */
const PATIENCE_MS = 400_000;
/** Files without a row go when they are older than an hour. */
const TWO_HOURS_MS = 7_200_000;
const SWEEP_MS = 61_000;
/** An engine may not see a folder for two minutes (engine/remote/remote-adapters.ts), and then says so. */
const LONGEST_LOAD_MS = 130_000;

export function simulate(seed: number): Promise<Report> {
  const world = new World(seed);
  const disk = new Disk("/simulated", () => world.now);
  return onStage(world, disk, async () => {
    const stopChecking = checkingBooks(world);
    const cluster = new Cluster(world, disk);
    try {
      return await play(world, cluster);
    } finally {
      stopChecking();
      await cluster.database.close();
    }
  });
}

async function play(world: World, cluster: Cluster): Promise<Report> {
  const { plan } = cluster;
  world.deathRate = plan.deathRate;
  world.say(`seed ${world.seed}: ${JSON.stringify(plan)}`);
  const requests = new Requests(cluster);
  const marks = { next: 1 };
  const clients = Array.from(
    { length: plan.clients },
    (_, i) => new Client(`client-${i + 1}`, cluster, requests, marks),
  );
  const over = () => world.elapsed >= plan.ms;
  let [ended, calm] = [0, false];
  for (const client of clients) {
    world.at(client.process, 0, "begins", () => {
      client.run(over).then(
        () => ended++,
        (error: unknown) => world.violation(`${client.process.name} gave up: ${(error as Error).stack}`),
      );
    });
  }
  world.at(world.outside, 0, "accidents", () => {
    void causeAccidents(cluster, over).then(() => {
      calm = true;
    });
  });
  const settled = () => calm && ended === clients.length;
  if (!(await world.run(settled, plan.ms + PATIENCE_MS))) {
    world.violation(`${clients.length - ended} clients were not done ${PATIENCE_MS / 1000} s after the last fault`);
  }
  let comparedPolicies = 0;
  if (world.wrong.length === 0) {
    await settle(world, cluster);
    for (const client of clients)
      await finish(world, client.process, async () => {
        comparedPolicies += await client.askAgain();
      });
    await close(world, cluster);
    await finish(world, world.outside, () => judge(world, cluster, clients, requests));
  }
  return report(world, cluster, clients, comparedPolicies);
}

/** Until no job is open. Then two hours pass, after which nothing may be left that belongs to nothing. */
async function settle(world: World, cluster: Cluster): Promise<void> {
  const { store } = cluster.database;
  let open = 1;
  const look = () => {
    void store.all("SELECT id FROM jobs WHERE status IN ('PENDING', 'RUNNING')").then((rows) => {
      open = rows.length;
      if (open > 0) world.at(world.outside, 500, "look", look);
    });
  };
  look();
  const limit = world.elapsed + PATIENCE_MS;
  const isQuiet = () => open === 0 && cluster.servers.every(({ serves }) => serves);
  if (!(await world.run(isQuiet, limit)))
    world.violation(`${open} jobs are open ${PATIENCE_MS / 1000} s after the end`);
  world.now += TWO_HOURS_MS;
  await world.run(() => false, world.elapsed + SWEEP_MS);
}

async function finish(world: World, process: Client["process"], work: () => Promise<void>): Promise<void> {
  if (!(await world.perform(process, work, PATIENCE_MS))) world.violation("the end does not come");
}

async function close(world: World, cluster: Cluster): Promise<void> {
  // the last words of the last request are on their way
  await world.run(() => false, world.elapsed + 1_000);
  // a request whose client has left may stand behind a load that waits for the files of a step that another server has deleted
  await world.run(
    () => cluster.servers.every((server) => server.leftOpen().length === 0),
    world.elapsed + LONGEST_LOAD_MS,
  );
  for (const server of cluster.servers) {
    for (const left of server.leftOpen()) world.violation(left);
    server.countRare();
  }
  cluster.isClosing = true;
  for (const [place] of cluster.servers.entries()) cluster.stop(place);
  const isOver = () => cluster.servers.every(({ process }) => !process.alive);
  if (!(await world.run(isOver, world.elapsed + 120_000))) world.violation("a server did not stop");
}

async function judge(world: World, cluster: Cluster, clients: readonly Client[], requests: Requests): Promise<void> {
  const { database, disk, plan } = cluster;
  const { store } = database;
  const folder = `${disk.root}/training`;
  const accepted = clients.flatMap((client) => [...client.accepted.keys()]);
  const stepsDeleted = plan.maxStepsPerModel < 1000 || clients.some(({ removed }) => removed);
  const serverErrors = requests.serverErrors.filter(({ message }) => !message.includes(CAUSED));
  const evidence = { store, folder, accepted, serverErrors, stepsDeleted };
  for (const wrong of await violations(evidence)) world.violation(wrong);
  for (const wrong of await wrongLineage(cluster, clients)) world.violation(wrong);
  for (const wrong of await unjustified(cluster)) world.violation(wrong);
  const reserved = await store.all<{ id: string }>("SELECT id FROM reservations");
  if (reserved.length > 0) world.violation(`${reserved.length} reservations belong to nobody`);
}

/** The weights of each step were made from those of the step before and the data of its own job. */
async function wrongLineage({ database, disk, lineage }: Cluster, clients: readonly Client[]): Promise<string[]> {
  const wrong: string[] = [];
  const marks = new Map(clients.flatMap((client) => [...client.accepted]));
  const { modelTable } = tablesOn(database.store);
  for (const { id } of await modelTable.all()) {
    const weights = new Map<number, string>();
    for (const { step, folder } of await modelTable.steps(id)) {
      weights.set(step, weightsOf(`${disk.root}/training/models/${id}/${folder}`));
    }
    const jobs = await database.store.all<{ id: string; from: number; to: number }>(
      `SELECT id, from_step AS "from", to_step AS "to" FROM jobs WHERE model_id = ?1 AND to_step IS NOT NULL ORDER BY seq`,
      id,
    );
    for (const { id: job, from, to } of jobs) {
      const made = lineage.get(weights.get(to) ?? "");
      const say = (what: string) => wrong.push(`step ${to} of model ${id}, made by job ${job}, ${what}`);
      if (to !== from + 1) say(`was made from step ${from}`);
      const before = weights.get(from);
      // a step that is gone, or a job that had nothing to learn
      if (made === undefined || before === undefined || before === weights.get(to)) continue;
      if (made.from !== before) say("was not made from the weights of the step before");
      const mark = marks.get(job);
      if (mark && made.marks.some((other) => other !== mark)) say(`has the data ${made.marks}, and not ${mark}`);
    }
  }
  return wrong;
}

/** No job fails but those that the simulation made fail. */
async function unjustified({ database: { store } }: Cluster): Promise<string[]> {
  const failed = await store.all<{ id: string; why: string | null }>(
    "SELECT id, error_message AS why FROM jobs WHERE status = 'FAILED'",
  );
  const known = [/^the server stopped/, /^the trainer process/, /ENOSPC/, DISK_FULL, TRAINER_FAILED, /workspace/];
  const isKnown = (why: string | null) => known.some((reason) => (why ?? "").match(reason));
  return failed.filter(({ why }) => !isKnown(why)).map(({ id, why }) => `job ${id} failed: ${why}`);
}

async function report(
  world: World,
  { database, witness, plan }: Cluster,
  clients: readonly Client[],
  comparedPolicies: number,
): Promise<Report> {
  const rows = await database.store.all<{ status: string; count: number }>(
    "SELECT status, COUNT(*) AS count FROM jobs GROUP BY status ORDER BY status",
  );
  const actions: Record<string, number> = {};
  for (const { done } of clients)
    for (const [name, count] of Object.entries(done)) actions[name] = (actions[name] ?? 0) + count;
  return {
    ...{ seed: world.seed, wrong: world.wrong, digest: world.digest, events: world.events, ms: world.elapsed },
    faults: Object.fromEntries(world.faults),
    reached: Object.fromEntries(world.reached),
    jobs: Object.fromEntries(rows.map(({ status, count }) => [status, count])),
    ...{ actions, replies: witness.compared, tokens: witness.tokens, comparedPolicies, plan, lines: world.lines },
  };
}
