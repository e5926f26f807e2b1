// A client that trains a model of its own, one job after the other. All learners send the same batches, and the trainer is
// exact, so the n-th step has the same files for all of them, whatever happened to the servers on the way.

import { setTimeout as sleep } from "node:timers/promises";
import type { Store } from "../../src/store/store.ts";
import type { Chance } from "./chance.ts";
import type { Requests } from "./requests.ts";
import { scoredGroup } from "./scored-group.ts";

const PREVIEW = "/v1/preview";
const LOOK_MS = 100;

/** What a job ends with that lost its server five times. Nothing is wrong with it, so it can be sent again. */
const UNLUCKY = /^the server stopped 5 times/;

interface Job {
  id: string;
  status: string;
  error_message: string | null;
}

export class Learner {
  readonly name: string;
  readonly id: string;
  /** Ids of its jobs. */
  readonly accepted: string[] = [];
  /** How many batches it has learnt. */
  learnt = 0;
  readonly #requests: Requests;
  readonly #chance: Chance;
  /** Groups per batch, each of two gradient steps. */
  readonly #groups: number;

  private constructor(name: string, id: string, requests: Requests, chance: Chance, groups: number) {
    this.name = name;
    this.id = id;
    this.#requests = requests;
    this.#chance = chance;
    this.#groups = groups;
  }

  static async register(name: string, requests: Requests, chance: Chance, groups = 2): Promise<Learner> {
    const body = { project: "cluster", name, base_model: "tiny", return_existing: true };
    const answer = await requests.send(chance, "POST", `${PREVIEW}/models`, body);
    return new Learner(name, expectDone<{ id: string }>(answer).id, requests, chance, groups);
  }

  /** Returns when the job for the next batch has made its step. */
  async learn(): Promise<void> {
    for (;;) {
      const { status, error_message: why } = await this.ended(await this.submit());
      if (status === "COMPLETED") return;
      if (!UNLUCKY.test(why ?? "")) throw new Error(`a job of ${this.name} is ${status}: ${why}`);
    }
  }

  /** Sends the next batch. Returns the id of the job. */
  async submit(): Promise<string> {
    const body = { model_id: this.id, trajectory_groups: batch(this.learnt, this.#groups) };
    const headers = { "idempotency-key": `${this.name}-${this.accepted.length}` };
    const path = `${PREVIEW}/training-jobs`;
    const { id } = expectDone<Job>(await this.#requests.send(this.#chance, "POST", path, body, headers));
    this.accepted.push(id);
    return id;
  }

  /** Waits for the end of the job of the last batch. */
  async ended(id: string): Promise<Job> {
    for (;;) {
      const job = await this.read(id);
      if (job.status === "COMPLETED") this.learnt += 1;
      if (job.status !== "PENDING" && job.status !== "RUNNING") return job;
      await sleep(LOOK_MS);
    }
  }

  async read(id: string): Promise<Job> {
    return expectDone(await this.#requests.send(this.#chance, "GET", `${PREVIEW}/training-jobs/${id}`));
  }

  /** The digests of the files of its steps, from step 0 on. */
  async digests(store: Store): Promise<string[]> {
    const sql = "SELECT digest FROM steps WHERE model_id = ?1 ORDER BY step";
    return (await store.all<{ digest: string }>(sql, this.id)).map(({ digest }) => digest);
  }
}

/** Trajectory groups of a request. */
function batch(number: number, groups: number): object[] {
  return Array.from({ length: groups }, (_, group) => scoredGroup([5, 6, 10 + (number % 20)], [5, 7, 30 + group]));
}

function expectDone<Body>({ status, body }: { status: number; body: unknown }): Body {
  if (status >= 400) throw new Error(`${status} ${JSON.stringify(body)}`);
  return body as Body;
}
