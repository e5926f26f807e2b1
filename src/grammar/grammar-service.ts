// Constraints to keys of compiled grammars, away from both the HTTP and the engine thread. Bounded in time and memory per
// constraint: what exceeds a bound is refused and its worker thread replaced; other compilations wait for nothing but a
// free worker. Results are cached by content, refusals included, except for taking too long: that may have been the
// machine's fault.

import { createHash } from "node:crypto";
import { CompileThread } from "./compile-thread.ts";
import { type Constraint, ConstraintError } from "./constraint.ts";

export interface GrammarServiceOptions {
  /** Constraints compiled at once. */
  threads?: number;
  /** Longest time for one constraint. */
  timeoutMs?: number;
  /** Heap of one worker thread. */
  memoryMb?: number;
  /** Memory for cached keys, in characters (one byte each). */
  cacheSize?: number;
  /** Told how long each compilation took, for metrics. */
  onCompiled?: (milliseconds: number) => void;
}

export interface CompiledGrammar {
  /** What GenerateRequest.grammar takes. */
  key: string;
}

type Outcome = { key: string } | { refused: string; late: boolean };

interface Waiting {
  /** Characters of the constraint. */
  size: number;
  start(thread: CompileThread): void;
}

/** Bookkeeping of one cache entry, so that many tiny ones count too. */
const entrySize = 512;

export class GrammarService {
  readonly #options: Required<GrammarServiceOptions>;
  readonly #threads: CompileThread[] = [];
  readonly #waiting: Waiting[] = [];
  readonly #cache = new Map<string, Outcome>();
  readonly #running = new Map<string, Promise<Outcome>>();
  #cached = 0;
  #closed = false;

  constructor(options: GrammarServiceOptions = {}) {
    this.#options = {
      threads: options.threads ?? 2,
      timeoutMs: options.timeoutMs ?? 5000,
      memoryMb: options.memoryMb ?? 512,
      cacheSize: options.cacheSize ?? 64 * 2 ** 20,
      onCompiled: options.onCompiled ?? (() => {}),
    };
  }

  /** Rejects with ConstraintError when the constraint cannot be used; anything else is a fault of the service. */
  async compile(constraint: Constraint): Promise<CompiledGrammar> {
    const source = asText(constraint);
    const hash = createHash("sha256").update(source).digest("base64");
    let outcome = this.#recall(hash);
    if (!outcome) {
      let running = this.#running.get(hash);
      if (!running) {
        running = this.#compile(source).finally(() => this.#running.delete(hash));
        this.#running.set(hash, running);
      }
      outcome = await running;
      if ("key" in outcome || !outcome.late) this.#remember(hash, outcome);
    }
    if ("refused" in outcome) throw new ConstraintError(outcome.refused, constraint.param);
    return { key: outcome.key };
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }

  async #compile(source: string): Promise<Outcome> {
    const thread = await this.#freeThread(source.length);
    const started = performance.now();
    try {
      return await thread.run(source);
    } finally {
      this.#options.onCompiled(performance.now() - started);
      const next = this.#nextWaiting();
      if (next) next.start(thread);
      else thread.busy = false;
    }
  }

  /** Claimed for the caller before this returns. */
  #freeThread(size: number): Promise<CompileThread> | CompileThread {
    if (this.#closed) throw new Error("the grammar service is closed");
    const idle = this.#threads.find((thread) => !thread.busy);
    if (!idle && this.#threads.length >= this.#options.threads) {
      return new Promise((start) => this.#waiting.push({ size, start }));
    }
    const thread = idle ?? new CompileThread(this.#options.timeoutMs, this.#options.memoryMb);
    if (!idle) this.#threads.push(thread);
    thread.busy = true;
    return thread;
  }

  /** The smallest goes first: who sends a pile of huge constraints waits for the others, not they for him. */
  #nextWaiting(): Waiting | undefined {
    if (this.#waiting.length === 0) return undefined;
    const at = this.#waiting.reduce((best, { size }, i) => (size < this.#waiting[best]!.size ? i : best), 0);
    return this.#waiting.splice(at, 1)[0];
  }

  #recall(hash: string): Outcome | undefined {
    const known = this.#cache.get(hash);
    if (!known) return undefined;
    this.#cache.delete(hash);
    this.#cache.set(hash, known);
    return known;
  }

  #remember(hash: string, outcome: Outcome): void {
    if (this.#cache.has(hash)) return;
    this.#cache.set(hash, outcome);
    this.#cached += sizeOf(outcome);
    for (const [oldest, entry] of this.#cache) {
      if (this.#cached <= this.#options.cacheSize) break;
      this.#cache.delete(oldest);
      this.#cached -= sizeOf(entry);
    }
  }
}

function sizeOf(outcome: Outcome): number {
  return entrySize + ("key" in outcome ? outcome.key.length : outcome.refused.length);
}

/** Without `param`, which does not change the grammar. */
function asText({ shape, reasoning, param }: Constraint): string {
  try {
    return JSON.stringify({ shape, reasoning, param: "" });
  } catch (error) {
    if (error instanceof RangeError) throw new ConstraintError("the constraint is nested too deeply", param);
    throw error;
  }
}
