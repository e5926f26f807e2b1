// One client of the fleet. It registers models, asks their policies, trains, cancels, forks, rolls back and deletes, and
// follows its jobs. It remembers what it was told, and notes at once what contradicts that.

import { setTimeout as sleep } from "node:timers/promises";
import { serverSentEvents } from "../../src/client/server-sent-events.ts";
import type { Chance } from "../cluster/chance.ts";
import type { Answer, Requests } from "../cluster/requests.ts";
import { scoredGroup } from "../cluster/scored-group.ts";

interface Model {
  id: string;
  name: string;
  /** The newest step whose end a client has seen. Later requests must get it or a newer one. */
  seenStep: number;
  jobs: string[];
}

interface Reply {
  choices: [{ token_ids: number[]; logprobs: { content: { logprob: number }[] } }];
}

interface TrainingEvent {
  id: string;
  type: string;
  data: { step?: number };
}

const ACTIONS = { register: 2, ask: 8, train: 8, cancel: 2, fork: 1, rollBack: 1, removeModel: 1 };
const MAX_MODELS = 4;
/** Milliseconds between two actions. */
const PAUSE = [20, 300] as const;
const PREVIEW = "/v1/preview";
const MESSAGES = [{ role: "user", content: "a b c" }];

export class Client {
  /** Ids of accepted jobs whose models still exist. */
  readonly accepted = new Set<string>();
  readonly wrong: string[] = [];
  /** What a policy said, by "name@step": greedy replies of the same step are the same on every server. */
  readonly replies = new Map<string, string>();
  /** How often it did what. */
  readonly done: Record<string, number> = {};
  readonly #name: string;
  readonly #requests: Requests;
  readonly #chance: Chance;
  #models: Model[] = [];
  #made = 0;
  readonly #following = new Set<Promise<void>>();

  constructor(name: string, requests: Requests, chance: Chance) {
    this.#name = name;
    this.#requests = requests;
    this.#chance = chance;
  }

  /** Acts until it is told to stop, then waits for the ends of the jobs that it follows. */
  async run(over: () => boolean): Promise<void> {
    while (!over()) {
      const action = this.#models.length === 0 ? "register" : this.#chance.weighted(ACTIONS);
      await this[action]();
      this.done[action] = (this.done[action] ?? 0) + 1;
      await sleep(this.#chance.between(...PAUSE));
    }
    await Promise.all(this.#following);
  }

  /** Asks every step that it has heard from once more, and compares. For the end, when nothing changes any more. */
  async askAgain(): Promise<number> {
    let asked = 0;
    for (const [policy, before] of this.replies) {
      const { status, body } = await this.#chat(policy);
      // a step may have been removed
      if (status === 404) continue;
      asked += 1;
      if (status !== 200) {
        this.wrong.push(`asking ${policy} at the end: ${status} ${JSON.stringify(body)}`);
        continue;
      }
      const now = said(body);
      if (now !== before) this.wrong.push(`${policy} said ${before}, and now ${now}`);
    }
    return asked;
  }

  async register(): Promise<void> {
    if (this.#models.length >= MAX_MODELS) return this.removeModel();
    await this.#create({ base_model: "tiny" });
  }

  async fork(): Promise<void> {
    const source = this.#chance.pick(this.#models);
    if (this.#models.length >= MAX_MODELS) return;
    await this.#create({ from: { model_id: source.id } });
  }

  async ask(): Promise<void> {
    const model = this.#chance.pick(this.#models);
    const seen = model.seenStep;
    const answer = await this.#chat(model.name);
    if (!this.#expect(answer, `asking ${model.name}`)) return;
    const step = answer.body.choices[0].policy_version as number;
    if (step < seen) this.wrong.push(`${model.name} answered with step ${step} after step ${seen} was announced`);
    const key = `${model.name}@${step}`;
    const before = this.replies.get(key);
    const now = said(answer.body);
    if (before !== undefined && before !== now) this.wrong.push(`${key} said ${before}, and then ${now}`);
    this.replies.set(key, now);
  }

  async train(): Promise<void> {
    const model = this.#chance.pick(this.#models);
    const reply = () => Array.from({ length: this.#chance.between(1, 8) }, () => this.#chance.between(5, 60));
    const groups = Array.from({ length: this.#chance.between(1, 3) }, () => scoredGroup(reply(), reply()));
    const key = `${this.#name}-${++this.#made}`;
    const body = { model_id: model.id, trajectory_groups: groups };
    const headers = { "idempotency-key": key };
    const answer = await this.#send("POST", `${PREVIEW}/training-jobs`, body, headers);
    if (!this.#expect(answer, `training ${model.name}`)) return;
    const { id } = answer.body as { id: string };
    this.accepted.add(id);
    model.jobs.push(id);
    const following = this.#follow(model, id).finally(() => this.#following.delete(following));
    this.#following.add(following);
  }

  async cancel(): Promise<void> {
    const { jobs } = this.#chance.pick(this.#models);
    if (jobs.length === 0) return;
    const id = this.#chance.pick(jobs.slice(-3));
    this.#expect(await this.#send("POST", `${PREVIEW}/training-jobs/${id}/cancel`), `cancelling ${id}`);
  }

  async rollBack(): Promise<void> {
    const model = this.#chance.pick(this.#models);
    if (model.seenStep === 0) return;
    const path = `${PREVIEW}/models/${model.id}/rollback`;
    // busy with a job: not now
    this.#expect(await this.#send("POST", path, { step: model.seenStep }), `rolling back ${model.name}`, [409]);
  }

  async removeModel(): Promise<void> {
    const model = this.#chance.pick(this.#models);
    this.#models = this.#models.filter((one) => one !== model);
    for (const id of model.jobs) this.accepted.delete(id);
    // gone already: the first try did it, but its answer was lost
    this.#expect(await this.#send("DELETE", `${PREVIEW}/models/${model.id}`), `deleting ${model.name}`, [404]);
    for (const key of this.replies.keys()) if (key.startsWith(`${model.name}@`)) this.replies.delete(key);
  }

  async #create(how: object): Promise<void> {
    const name = `${this.#name}-${++this.#made}`;
    const body = { project: "chaos", name, return_existing: true, ...how };
    const answer = await this.#send("POST", `${PREVIEW}/models`, body);
    if (this.#expect(answer, `registering ${name}`)) {
      this.#models.push({ id: answer.body.id, name, seenStep: 0, jobs: [] });
    }
  }

  /** Reads a job's events from any server until its end, going on elsewhere when a connection is lost. */
  async #follow(model: Model, id: string): Promise<void> {
    const seen: TrainingEvent[] = [];
    for (;;) {
      const last = seen.at(-1)?.id;
      const headers = { accept: "text/event-stream", ...(last === undefined ? {} : { "last-event-id": last }) };
      const response = await this.#requests.open(this.#chance, `${PREVIEW}/training-jobs/${id}/events`, headers);
      if (response !== null) {
        // deleted with its model
        if (response.status === 404 && !this.#models.includes(model)) return;
        if (response.status === 204) return void this.wrong.push(`the stream of job ${id} ended without an end`);
        if (response.status !== 200 || response.body === null) {
          return void this.wrong.push(`following job ${id}: ${response.status} ${await response.text()}`);
        }
        if (await this.#read(response.body, seen)) return this.#check(model, id, seen);
      }
      await sleep(200);
    }
  }

  /** Whether the end came. */
  async #read(body: AsyncIterable<Uint8Array>, seen: TrainingEvent[]): Promise<boolean> {
    try {
      for await (const { data } of serverSentEvents(body)) {
        seen.push(JSON.parse(data));
        if (/^training_(ended|failed)$/.test(seen.at(-1)!.type)) return true;
      }
    } catch {
      // the server is gone
    }
    return false;
  }

  #check(model: Model, id: string, seen: readonly TrainingEvent[]): void {
    const types = seen.map(({ type }) => type);
    if (new Set(seen.map((event) => event.id)).size < seen.length) this.wrong.push(`job ${id} told an event twice`);
    const starts = types.filter((type) => type === "training_started").length;
    if (starts > 1 || (starts === 1 && types[0] !== "training_started")) {
      this.wrong.push(`job ${id} told ${types.join(", ")}`);
    }
    const end = seen.at(-1)!;
    if (end.type === "training_ended") model.seenStep = Math.max(model.seenStep, end.data.step ?? 0);
  }

  #chat(model: string): Promise<Answer> {
    const body = { model, messages: MESSAGES, max_tokens: 4, temperature: 0, logprobs: true };
    return this.#send("POST", "/v1/chat/completions", body);
  }

  #send(method: string, path: string, body?: unknown, headers = {}): Promise<Answer> {
    return this.#requests.send(this.#chance, method, path, body, headers);
  }

  #expect({ status, body }: Answer, what: string, also: readonly number[] = []): boolean {
    if (status < 400) return true;
    if (!also.includes(status)) this.wrong.push(`${what}: ${status} ${JSON.stringify(body)}`);
    return false;
  }
}

/** Tokens and their log-probabilities, whose bits depend on the weights of the step. */
function said({ choices: [choice] }: Reply): string {
  return JSON.stringify([choice.token_ids, choice.logprobs.content.map(({ logprob }) => logprob)]);
}
