// How the clients of a simulation reach its servers: over a network that loses and repeats what they send, and what they get.

import { OUTCOME_UNKNOWN, type ServerError } from "../training-invariants/violations.ts";
import type { Cluster } from "./cluster.ts";
import { type Reply, replyOf, type SimulatedServer } from "./server.ts";

/** A client waits so long for an answer. */
const ANSWER_MS = 4_000;
/** Faults last seconds. Whatever is refused for longer is lost. */
const PATIENCE_MS = 180_000;
const NOT_NOW = new Set([429, 503, 507]);
/** In messages of errors that the simulation caused and that a server cannot but pass on. */
export const CAUSED = "simulated";

/** What a server does with a request. `gone`: its client has left. */
export type Work<R> = (server: SimulatedServer, gone: AbortSignal) => Promise<R>;

export class Requests {
  readonly serverErrors: ServerError[] = [];
  repeated = 0;
  readonly #cluster: Cluster;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Sends it until there is an answer other than "not now" and "look whether it took effect". null = it gave up: the workspace is full. */
  async send<R>(what: string, work: Work<R>): Promise<Reply & { body: R }> {
    const { world } = this.#cluster;
    const limit = world.now + PATIENCE_MS;
    for (let tries = 0; ; tries++) {
      const reply = await this.once(what, work);
      if (reply !== null && !NOT_NOW.has(reply.status) && !isUnclear(reply)) return reply;
      // no wait helps a workspace that is full
      if (reply?.status === 429 && reply.retryAfter === null) return reply;
      if (world.now > limit) {
        world.violation(`${what}: no answer for ${PATIENCE_MS / 1000} s: ${reply?.message}`);
        return { status: 599, retryAfter: null, message: "", body: null as R };
      }
      this.repeated++;
      await world.pause(Math.min(1000, 50 * 2 ** tries), "try again");
    }
  }

  /** One try on any server. null = no answer. */
  once<R>(what: string, work: Work<R>): Promise<(Reply & { body: R }) | null> {
    const { world, servers, plan } = this.#cluster;
    const from = world.current;
    const server = world.chance.pick(servers);
    return new Promise((resolve) => {
      const gone = new AbortController();
      const latency = () => world.chance.between(0, 10);
      const late = world.at(from, ANSWER_MS, "no answer", () => {
        world.at(server.process, latency(), "client gone", () => gone.abort());
        resolve(null);
      });
      const answer = (reply: Reply) => {
        if (!server.process.alive) return;
        this.#note(what, reply);
        if (this.#isLost("answer")) return;
        world.at(from, latency(), "answer", () => {
          late.run = null;
          resolve(reply as Reply & { body: R });
        });
      };
      if (this.#isLost("request")) return;
      const copies = world.fails(plan.request) ? 2 : 1;
      if (copies > 1) world.count("request repeated");
      for (let copy = 0; copy < copies; copy++) {
        world.at(world.outside, latency() + 50 * copy, what, () => {
          // the connection is refused
          if (!server.process.alive || !server.serves)
            return void world.at(from, latency(), "refused", () => resolve(null));
          world.at(server.process, 0, what, () => {
            work(server, gone.signal).then(
              (body) => answer({ status: 200, retryAfter: null, message: "", body }),
              (error: unknown) => answer(replyOf(error)),
            );
          });
          // its connections break with it
          server.process.onDeath(() => world.at(from, latency(), "connection lost", () => resolve(null)));
        });
      }
    });
  }

  #isLost(what: string): boolean {
    const { world, plan } = this.#cluster;
    if (!world.fails(plan.request)) return false;
    world.count(`${what} lost`);
    return true;
  }

  #note(what: string, { status, retryAfter, message }: Reply): void {
    if (status < 500) return;
    this.serverErrors.push({ status, message: `${what}: ${message}`, retryAfter: retryAfter !== null });
  }
}

/** What clients may ask for once more: nobody knows whether it took effect, or an engine or a trainer failed. */
function isUnclear({ status, message }: Reply): boolean {
  return status === 500 && (message.includes(OUTCOME_UNKNOWN) || message.includes(CAUSED));
}
