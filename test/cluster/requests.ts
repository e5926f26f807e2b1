// Requests of clients that know several servers. What gets no answer, or is refused for now, is sent again to another one.

import { setTimeout as sleep } from "node:timers/promises";
import { OUTCOME_UNKNOWN, type ServerError } from "../training-invariants/violations.ts";
import type { Chance } from "./chance.ts";

/** A server that is paused does not answer. */
const ANSWER_MS = 15_000;
/** Faults last seconds. Whatever is refused for longer is lost. */
const PATIENCE_MS = 180_000;
const NOT_NOW = new Set([429, 503, 507]);

export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the tests read many shapes
  body: any;
}

export class Requests {
  readonly serverErrors: ServerError[] = [];
  /** Requests that were sent again. */
  repeated = 0;
  readonly #urls: () => readonly string[];
  readonly #key: string;

  /** `urls`: of the servers, also of those that are down. */
  constructor(urls: () => readonly string[], key: string) {
    this.#urls = urls;
    this.#key = key;
  }

  /** Sends it until there is an answer other than "not now" (429, 503 or 507) and "look whether it took effect". */
  async send(chance: Chance, method: string, path: string, body?: unknown, headers = {}): Promise<Answer> {
    const limit = Date.now() + PATIENCE_MS;
    for (let tries = 0; ; tries++) {
      const answer = await this.#try(chance, method, path, body, headers);
      if (answer !== null) return answer;
      if (Date.now() > limit) throw new Error(`${method} ${path}: no answer for ${PATIENCE_MS / 1000} s`);
      this.repeated += 1;
      await sleep(Math.min(1000, 50 * 2 ** tries));
    }
  }

  /** One try on any server; null = not now. The caller reads the body of an answer below 400. */
  async open(chance: Chance, path: string, headers: Record<string, string>): Promise<Response | null> {
    try {
      const response = await fetch(chance.pick(this.#urls()) + path, { headers: this.#headers(headers) });
      if (response.status < 500 && response.status !== 429) return response;
      this.#note(response, `GET ${path}: ${await response.text()}`);
      return null;
    } catch {
      return null;
    }
  }

  async #try(
    chance: Chance,
    method: string,
    path: string,
    body: unknown,
    headers: Record<string, string>,
  ): Promise<Answer | null> {
    try {
      const response = await fetch(chance.pick(this.#urls()) + path, {
        method,
        headers: this.#headers(body === undefined ? headers : { ...headers, "content-type": "application/json" }),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      const text = await response.text();
      this.#note(response, `${method} ${path}: ${text}`);
      // whatever these clients ask for can be asked for twice
      if (NOT_NOW.has(response.status) || text.includes(OUTCOME_UNKNOWN)) return null;
      return { status: response.status, body: text === "" ? null : JSON.parse(text) };
    } catch (error) {
      // the connection was refused or lost, or the server is silent
      if (error instanceof SyntaxError) throw new Error(`${method} ${path}: the answer is not JSON`, { cause: error });
      return null;
    }
  }

  #note({ status, headers }: Response, what: string): void {
    if (status < 500) return;
    this.serverErrors.push({ status, message: what.slice(0, 500), retryAfter: headers.has("retry-after") });
  }

  #headers(headers: Record<string, string>): Record<string, string> {
    return { authorization: `Bearer ${this.#key}`, ...headers };
  }
}
