// A replica with what the fleet knows about it: our requests there, the prefixes it has seen, its failures and counters.

import type { ReplicaFacts } from "../contract.ts";
import type { PromptBlocks } from "./prefix-index.ts";
import { PrefixIndex } from "./prefix-index.ts";
import type { Replica } from "./replica.ts";
import { busyTokens, type Candidate, type OwnWork } from "./router.ts";

/** A replica that fails before a first token is left alone for this long; the pause doubles up to the limit. */
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;

/** Some choices of a request on a replica. */
export interface Job {
  readonly startedAt: number;
  /** Prompt tokens it has to compute; 0 once the prompt is computed. */
  uncomputed: number;
  /** Choices that have not ended. */
  choices: number;
}

export class Member implements OwnWork {
  readonly replica: Replica;
  readonly counts = { requests: 0, failures: 0, resumes: 0, promptTokens: 0, prefixHitTokens: 0, generatedTokens: 0 };
  readonly #prefixes = new PrefixIndex();
  readonly #jobs = new Set<Job>();
  #identity: string;
  #excludedUntil = 0;
  #pauseMs = 0;

  constructor(replica: Replica) {
    this.replica = replica;
    this.#identity = replica.identity;
  }

  get choices(): number {
    return this.#sum((job) => job.choices);
  }

  get uncomputed(): number {
    return this.#sum((job) => job.uncomputed);
  }

  startedSince(time: number): number {
    return this.#sum((job) => (job.startedAt >= time ? job.choices : 0));
  }

  /** Milliseconds until it may be tried again; 0 = now. */
  get pauseLeft(): number {
    return Math.max(0, this.#excludedUntil - performance.now());
  }

  /** Whether requests may be sent to it at all. */
  get available(): boolean {
    return this.replica.state === "ready" && this.replica.info !== null && this.pauseLeft === 0;
  }

  /** A request of more choices than the replica holds runs there alone. */
  hasRoom(choices: number): boolean {
    const own = this.choices;
    return own === 0 || own + choices <= this.replica.maxInFlight;
  }

  facts(): ReplicaFacts {
    const { name, maxInFlight, state } = this.replica;
    const shown = state === "ready" && this.pauseLeft > 0 ? "excluded" : state;
    return { name, maxInFlight, state: shown, inFlight: this.choices, ...this.counts };
  }

  /** `blocks`: null when the request does not read the prefix cache. */
  candidate(promptTokens: number, blocks: PromptBlocks | null, hasAdapter: boolean): Candidate & { member: Member } {
    const { name, load, info } = this.replica;
    const matched = blocks === null ? 0 : this.#prefixes.matched(blocks.chain) * info!.linkSize;
    return { member: this, name, uncomputed: promptTokens - matched, busy: busyTokens(this, load), hasAdapter };
  }

  begin(choices: number, uncomputed: number, blocks: PromptBlocks | null): Job {
    const job: Job = { startedAt: performance.now(), uncomputed, choices };
    this.#jobs.add(job);
    this.counts.requests++;
    if (blocks !== null) this.#prefixes.add(blocks.chain);
    return job;
  }

  endChoice(job: Job): void {
    job.choices--;
    if (job.choices === 0) this.#jobs.delete(job);
  }

  /** It has produced a token. */
  succeeded(): void {
    this.#pauseMs = 0;
  }

  /** It lost a choice. `early`: before the first token. Returns whether it is left alone from now on for a while. */
  failed(early: boolean): boolean {
    this.counts.failures++;
    if (!early || this.pauseLeft > 0) return false; // requests that fail together are one reason
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, 2 * this.#pauseMs));
    this.#excludedUntil = performance.now() + this.#pauseMs;
    return true;
  }

  /** True if the process behind the replica is a new one. */
  noticeRestart(): boolean {
    if (this.replica.identity === this.#identity) return false;
    this.#identity = this.replica.identity;
    this.#prefixes.clear();
    this.#excludedUntil = 0;
    return true;
  }

  #sum(amount: (job: Job) => number): number {
    let sum = 0;
    for (const job of this.#jobs) sum += amount(job);
    return sum;
  }
}
