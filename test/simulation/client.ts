// One client of the simulation. It registers models, asks their policies, trains, cancels, forks, rolls back and deletes, and
// follows its jobs. It remembers what it was told, and notes at once what contradicts that.

import type { GenerateRequest } from "../../src/engine/contract.ts";
import { RL_DEFAULTS, SFT_DEFAULTS } from "../../src/training/config.ts";
import type { TrajectoryGroup } from "../../src/training/data/trajectory.ts";
import type { Submission } from "../../src/training/jobs/jobs.ts";
import { generateRequest } from "../support/requests.ts";
import { toyHistory } from "../support/toy-encoder.ts";
import type { Cluster } from "./cluster.ts";
import type { Requests } from "./requests.ts";
import type { Reply, Said } from "./server.ts";
import { Process } from "./world.ts";

interface Model {
  id: string;
  name: string;
  /** The newest step whose end the client has seen. Later requests must get it or a newer one. */
  seenStep: number;
  jobs: string[];
}

const ACTIONS = { register: 2, ask: 12, train: 8, cancel: 1, fork: 1, rollBack: 2, removeSteps: 1, removeModel: 1 };
type Action = keyof typeof ACTIONS;

const MAX_MODELS = 3;
const PAUSE = [5, 500] as const;
const WORDS = "a1 a2 a3 yes no maybe".split(" ");
const END = /^training_(ended|failed)$/;

export class Client {
  readonly process: Process;
  /** Ids of accepted jobs whose models still exist, and the marks of their data. */
  readonly accepted = new Map<string, number>();
  /** What a policy said, by "name@step prompt": greedy replies of the same step are the same on every server. */
  readonly replies = new Map<string, string>();
  readonly done: Record<string, number> = {};
  /** Deletes steps on its own. */
  removed = false;
  readonly #cluster: Cluster;
  readonly #requests: Requests;
  readonly #owner: string;
  readonly #marks: { next: number };
  #models: Model[] = [];
  #made = 0;
  readonly #following = new Set<Promise<void>>();

  /** `marks`: shared by all clients. */
  constructor(name: string, cluster: Cluster, requests: Requests, marks: { next: number }) {
    this.process = new Process(name);
    this.#cluster = cluster;
    this.#requests = requests;
    this.#marks = marks;
    this.#owner = cluster.world.chance.pick(["one", "two"]);
  }

  /** Acts until it is told to stop, then waits for the ends of the jobs that it follows. */
  async run(over: () => boolean): Promise<void> {
    const { world } = this.#cluster;
    while (!over()) {
      const action: Action = this.#models.length === 0 ? "register" : world.chance.weighted(ACTIONS);
      await this[action]();
      this.done[action] = (this.done[action] ?? 0) + 1;
      await world.pause(world.chance.between(...PAUSE), "client");
    }
    await Promise.all(this.#following);
  }

  /** Asks for every step that it has heard from once more, and compares. */
  async askAgain(): Promise<number> {
    let asked = 0;
    for (const [key, before] of this.replies) {
      const [policy, prompt] = key.split(" ") as [string, string];
      const { status, body, message } = await this.#ask(policy, prompt.split(",").map(Number), {});
      // a step may have been removed
      if (status === 404) continue;
      asked++;
      const now = status === 200 ? JSON.stringify(body.tokens) : `${status} ${message}`;
      if (now !== before) this.#wrong(`${key} said ${before}, and now ${now}`);
    }
    return asked;
  }

  async register(): Promise<void> {
    if (this.#models.length >= MAX_MODELS) return this.removeModel();
    await this.#create({ baseModel: "tiny", from: null });
  }

  async fork(): Promise<void> {
    const source = this.#pick(this.#models);
    if (this.#models.length >= MAX_MODELS) return;
    const { chance } = this.#cluster.world;
    const step = chance.between(0, 1) === 0 ? null : source.seenStep;
    await this.#create({ baseModel: null, from: { modelId: source.id, step, owner: this.#owner } });
  }

  /** Several at once, so that an engine has more to do than it has room for. */
  async ask(): Promise<void> {
    const questions = this.#cluster.world.chance.pick([1, 1, 2, 4, 8]);
    await Promise.all(Array.from({ length: questions }, () => this.#askOnce()));
  }

  async #askOnce(): Promise<void> {
    const { chance } = this.#cluster.world;
    const model = chance.between(0, 4) === 0 ? null : this.#pick(this.#models);
    const seen = model?.seenStep ?? 0;
    const length = chance.between(1, 30);
    const base = chance.between(0, 2);
    const prompt = Array.from({ length }, (_, i) => 10 + ((i * 7 + base) % 50));
    const isPlain = chance.between(0, 1) === 0;
    const options: Partial<GenerateRequest> = isPlain
      ? {}
      : {
          n: chance.between(1, 3),
          priority: chance.between(-1, 1),
          grammar: chance.between(0, 3) === 0 ? JSON.stringify([[20, 21, 22, 23], [20, 21, 30], [40]]) : null,
        };
    const name = model?.name ?? null;
    const { status, body, message } = await this.#ask(name, prompt, options, !isPlain);
    if (!this.#expect(status, message, `asking ${name}`) || model === null) return;
    if (body.step! < seen) this.#wrong(`${name} answered with step ${body.step} after step ${seen} was announced`);
    if (!isPlain) return;
    const key = `${name}@${body.step} ${prompt}`;
    const before = this.replies.get(key);
    const now = JSON.stringify(body.tokens);
    if (before !== undefined && before !== now) this.#wrong(`${key} said ${before}, and then ${now}`);
    this.replies.set(key, now);
  }

  async train(): Promise<void> {
    const { chance } = this.#cluster.world;
    const model = this.#pick(this.#models);
    const mark = this.#marks.next++;
    const key = `${this.process.name}-${++this.#made}`;
    const groups = Array.from({ length: chance.between(1, 3) }, () => this.#group(mark));
    const [spec, items] = chance.between(0, 5) > 0 ? rl(groups) : sft(chance.between(1, 4));
    const reply = await this.#requests.send(`training ${model.name}`, async ({ training }) => {
      const draft = await training.jobs.draft(this.#owner);
      try {
        for (const item of items) await draft.input.append(item);
      } catch (error) {
        await training.jobs.discard(draft);
        throw error;
      }
      const hash = JSON.stringify(items);
      const submission = { owner: this.#owner, modelId: model.id, spec, idempotencyKey: key, requestHash: hash };
      return (await training.jobs.submit(draft, submission)).id;
    });
    if (!this.#expect(reply.status, reply.message, `training ${model.name}`)) return;
    const id = reply.body;
    this.accepted.set(id, spec.kind === "rl" ? mark : 0);
    model.jobs.push(id);
    const following = this.#follow(model, id).finally(() => this.#following.delete(following));
    this.#following.add(following);
  }

  async cancel(): Promise<void> {
    const { jobs } = this.#pick(this.#models);
    if (jobs.length === 0) return;
    const id = this.#pick(jobs.slice(-3));
    const what = `cancelling ${id}`;
    const { status, message } = await this.#requests.send(what, ({ training }) =>
      training.jobs.cancel(id, this.#owner),
    );
    this.#expect(status, message, what);
  }

  async rollBack(): Promise<void> {
    const model = this.#pick(this.#models);
    if (model.seenStep === 0) return;
    const { id, seenStep } = model;
    const what = `rolling back ${model.name}`;
    const { status, message } = await this.#requests.send(what, ({ training }) =>
      training.models.rollback(id, this.#owner, seenStep),
    );
    // busy with a job, or old: not now
    this.#expect(status, message, what, [404, 409]);
  }

  async removeSteps(): Promise<void> {
    const { id, name, seenStep } = this.#pick(this.#models);
    if (seenStep < 2) return;
    this.removed = true;
    const what = `deleting steps of ${name}`;
    const steps = [seenStep - 1, seenStep - 2];
    const { status, message } = await this.#requests.send(what, ({ training }) =>
      training.models.deleteSteps(id, this.#owner, steps),
    );
    this.#expect(status, message, what);
  }

  async removeModel(): Promise<void> {
    const model = this.#pick(this.#models);
    this.#models = this.#models.filter((one) => one !== model);
    const what = `deleting ${model.name}`;
    const { status, message } = await this.#requests.send(what, ({ training }) =>
      training.models.delete(model.id, this.#owner),
    );
    // a job on a server that is not heard of: again in a minute
    if (status === 409) return void this.#models.push(model);
    for (const id of model.jobs) this.accepted.delete(id);
    // gone already: the first try did it, but its answer was lost
    this.#expect(status, message, what, [404]);
    for (const key of this.replies.keys()) if (key.startsWith(`${model.name}@`)) this.replies.delete(key);
  }

  async #create(how: Pick<Parameters<Training["models"]["create"]>[0], "baseModel" | "from">): Promise<void> {
    const name = `${this.process.name}-${++this.#made}`;
    const names = { owner: this.#owner, entity: "team", project: "simulation", name, returnExisting: true };
    const { status, message, body } = await this.#requests.send(`making ${name}`, ({ training }) =>
      training.models.create({ ...names, ...how }),
    );
    // the step to fork may be gone
    if (!this.#expect(status, message, `making ${name}`, [404])) return;
    if (status >= 400) return;
    this.#models.push({ id: body.id, name, seenStep: 0, jobs: [] });
  }

  /** Reads the events until the end, on any server, from where it was. */
  async #follow(model: Model, id: string): Promise<void> {
    const { world } = this.#cluster;
    const seen: { id: string; type: string; data: Record<string, unknown> }[] = [];
    while (!END.test(seen.at(-1)?.type ?? "")) {
      const what = `following ${id}`;
      const after = seen.at(-1)?.id ?? null;
      const { status, message, body } = await this.#requests.send(what, ({ training }) =>
        training.jobs.events(id, after, 1000),
      );
      // deleted with its model
      if (status === 404 && !this.#models.includes(model)) return;
      if (!this.#expect(status, message, what)) return;
      seen.push(...body);
      await world.pause(300, "follow");
    }
    const types = seen.map(({ type }) => type);
    if (new Set(seen.map((event) => event.id)).size < seen.length) this.#wrong(`job ${id} told an event twice`);
    const starts = types.filter((type) => type === "training_started").length;
    if (starts > 1 || (starts === 1 && types[0] !== "training_started")) this.#wrong(`job ${id} told ${types}`);
    const end = seen.at(-1)!;
    if (end.type === "training_ended") model.seenStep = Math.max(model.seenStep, end.data.step as number);
  }

  #ask(
    name: string | null,
    prompt: readonly number[],
    options: Partial<GenerateRequest>,
    leaves = false,
  ): Promise<Reply & { body: Said }> {
    const { world } = this.#cluster;
    const isRandom = options.n !== undefined && world.chance.between(0, 1) === 0;
    const sampling = {
      ...{ maxTokens: options.n === undefined ? 6 : world.chance.between(1, 16), logprobs: 1 },
      ...(isRandom ? { temperature: 1, seed: BigInt(world.chance.between(0, 9)) } : {}),
    };
    const request = generateRequest(prompt, sampling, options);
    const leavesAfter = leaves && world.chance.between(0, 3) === 0 ? world.chance.between(1, 300) : null;
    return this.#requests.send(`asking ${name}`, async (server, gone) => {
      const left = new AbortController();
      if (leavesAfter !== null) setTimeout(() => left.abort(), leavesAfter);
      return server.ask(name, request, this.#owner, AbortSignal.any([gone, left.signal]));
    });
  }

  #group(mark: number): TrajectoryGroup {
    const { chance } = this.#cluster.world;
    const reply = () => `${Array.from({ length: chance.between(1, 5) }, () => chance.pick(WORDS)).join(" ")} <e>`;
    const trajectory = (reward: number) => {
      const text = reply();
      const logprobs = text.split(" ").map(() => -1 - mark / 1e6);
      return { reward, initialPolicyVersion: null, metrics: {}, histories: [toyHistory(text, { logprobs })] };
    };
    return { exceptions: 0, metrics: {}, trajectories: [trajectory(1), trajectory(chance.between(0, 1))] };
  }

  #pick<Item>(items: readonly Item[]): Item {
    return this.#cluster.world.chance.pick(items);
  }

  #expect(status: number, message: string, what: string, also: readonly number[] = []): boolean {
    if (status < 400) return true;
    // the workspace is full, or the model has gone with another client's request
    if (status === 429 || status === 599 || also.includes(status)) return false;
    this.#wrong(`${what}: ${status} ${message}`);
    return false;
  }

  #wrong(what: string): void {
    this.#cluster.world.violation(`${this.process.name}: ${what}`);
  }
}

type Training = Cluster["servers"][number]["training"];

function rl(groups: readonly TrajectoryGroup[]): [Submission["spec"], readonly unknown[]] {
  return [{ kind: "rl", config: RL_DEFAULTS }, groups];
}

function sft(examples: number): [Submission["spec"], readonly unknown[]] {
  const messages = ["q1", "yes"].map((text, i) => ({ role: i === 0 ? "user" : "assistant", texts: [text] }));
  return [{ kind: "sft", config: SFT_DEFAULTS }, Array.from({ length: examples }, () => ({ messages, tools: null }))];
}
