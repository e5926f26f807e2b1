// Compiles constraints to grammar keys, off the HTTP and engine threads. Each constraint has a time and a memory limit;
// one that exceeds a limit is refused and its worker thread replaced. Clients take turns on the threads, so one with many
// constraints delays another by no more than those that already run. Results are cached by content. Refusals are cached
// too, except timeouts, which may be the machine's fault. A queued compilation is dropped when nobody waits for it any
// more.

import { createHash } from "node:crypto";
import { FairQueue } from "../pacing/fair-queue.ts";
import { CompileThread } from "./compile-thread.ts";
import { type ConstrainedOutput, type Constraint, ConstraintError, LateConstraintError } from "./constraint.ts";
import { TOO_DEEP } from "./grammar-error.ts";

export interface GrammarServiceOptions {
  /** Number of constraints compiled at once. */
  threads?: number;
  /** Time limit for one constraint. The limit of work comes first, unless the machine is very slow. */
  timeoutMs?: number;
  /** Heap limit of one worker thread. */
  memoryMb?: number;
  /** Memory for cached keys, in characters of one byte each. */
  cacheSize?: number;
  /** Receives the duration of each compilation, for metrics. */
  onCompiled?: (milliseconds: number) => void;
  /** Called once for every schema keyword that no draft defines and that therefore has no effect. */
  onIgnored?: (keyword: string) => void;
}

export interface CompiledGrammar {
  /** The value for GenerateRequest.grammar. */
  key: string;
}

type Outcome = { key: string } | { refused: string; late: boolean };

/** One compilation, shared by everybody who asks for the same constraint at the same time. */
interface Compilation {
  readonly outcome: Promise<Outcome>;
  /** Clients in whose lines it waits. It runs as soon as it is the turn of one of them. */
  readonly owners: Set<string>;
  askers: number;
  started: boolean;
  run(thread: CompileThread): Promise<void>;
}

/** A client has too many constraints waiting. */
export class QueueFullError extends Error {
  override name = "QueueFullError";
}

/** Constraints of one client that may wait for a thread. */
const MAX_WAITING = 100;

/** Overhead of one cache entry, so that many tiny entries count too. */
const ENTRY_SIZE = 512;

/** Limits the log lines that made-up keywords can cause. */
const MAX_REPORTED = 1000;

export class GrammarService {
  readonly #options: Required<GrammarServiceOptions>;
  readonly #threads: CompileThread[] = [];
  readonly #queue = new FairQueue<Compilation>({ waitingPerOwner: MAX_WAITING });
  readonly #cache = new Map<string, Outcome>();
  readonly #running = new Map<string, Compilation>();
  readonly #reported = new Set<string>();
  #cached = 0;
  #closed = false;

  constructor(options: GrammarServiceOptions = {}) {
    this.#options = {
      threads: options.threads ?? 2,
      timeoutMs: options.timeoutMs ?? 60_000,
      memoryMb: options.memoryMb ?? 512,
      cacheSize: options.cacheSize ?? 64 * 2 ** 20,
      onCompiled: options.onCompiled ?? (() => {}),
      onIgnored: options.onIgnored ?? (() => {}),
    };
  }

  /**
   * Rejects with ConstraintError when the constraint cannot be used, with LateConstraintError when it took too long and
   * with QueueFullError when `client` has too many waiting; any other rejection is an internal fault. Returns null when
   * one of `leaving` aborts first.
   */
  async compile(
    constraint: Constraint,
    client: string,
    leaving: readonly AbortSignal[] = [],
  ): Promise<CompiledGrammar | null> {
    const source = asText(constraint);
    const hash = createHash("sha256").update(source).digest("base64");
    const outcome = this.#recall(hash) ?? (await this.#outcomeFor(hash, source, client, leaving));
    if (outcome === null) return null;
    if ("key" in outcome) return { key: outcome.key };
    throw new (outcome.late ? LateConstraintError : ConstraintError)(outcome.refused, constraint.param);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }

  async #outcomeFor(
    hash: string,
    source: string,
    client: string,
    leaving: readonly AbortSignal[],
  ): Promise<Outcome | null> {
    if (leaving.some(({ aborted }) => aborted)) return null;
    if (this.#closed) throw new Error("the grammar service is closed");
    const compilation = this.#running.get(hash) ?? this.#made(hash, source);
    this.#enqueue(compilation, client);
    this.#running.set(hash, compilation);
    compilation.askers++;
    this.#startSome();
    const left = firstOf(leaving);
    try {
      return await Promise.race([compilation.outcome, left.aborted]);
    } finally {
      left.forget();
      if (--compilation.askers === 0 && !compilation.started) {
        // Nobody may join a dropped compilation: later callers start their own.
        for (const owner of compilation.owners) this.#queue.remove(owner, compilation);
        this.#running.delete(hash);
      }
    }
  }

  #enqueue(compilation: Compilation, client: string): void {
    if (compilation.started || compilation.owners.has(client)) return;
    if (!this.#queue.add(client, compilation)) {
      throw new QueueFullError(`${MAX_WAITING} constraints of this token already wait to be compiled.`);
    }
    compilation.owners.add(client);
  }

  #made(hash: string, source: string): Compilation {
    let settle: { resolve(outcome: Outcome): void; reject(fault: unknown): void };
    const outcome = new Promise<Outcome>((resolve, reject) => {
      settle = { resolve, reject };
    });
    outcome.catch(() => {}); // whoever waits for it handles the fault, if somebody still does
    const run = async (thread: CompileThread): Promise<void> => {
      try {
        const result = await thread.run(source);
        if ("ignored" in result) this.#report(result.ignored);
        if ("key" in result || !result.late) this.#remember(hash, result);
        settle.resolve(result);
      } catch (error) {
        settle.reject(error);
      }
      this.#running.delete(hash);
    };
    return { outcome, owners: new Set(), askers: 0, started: false, run };
  }

  /** Starts what waits, as far as there are threads. */
  #startSome(): void {
    for (let thread = this.#idleThread(); thread !== null && !this.#closed; thread = this.#idleThread()) {
      const turn = this.#queue.take();
      if (turn === undefined) return;
      const compilation = turn.item;
      compilation.started = true;
      // It goes on for all its owners at once, so it waits in no line any more.
      for (const owner of compilation.owners) this.#queue.remove(owner, compilation);
      thread.busy = true;
      const startedAt = performance.now();
      void compilation.run(thread).then(() => {
        const took = performance.now() - startedAt;
        thread.busy = false;
        turn.end(took);
        this.#options.onCompiled(took);
        this.#startSome();
      });
    }
  }

  #idleThread(): CompileThread | null {
    const idle = this.#threads.find((thread) => !thread.busy);
    if (idle !== undefined) return idle;
    if (this.#threads.length >= this.#options.threads) return null;
    const thread = new CompileThread(this.#options.timeoutMs, this.#options.memoryMb);
    this.#threads.push(thread);
    return thread;
  }

  #report(keywords: readonly string[]): void {
    for (const keyword of keywords) {
      if (this.#reported.has(keyword) || this.#reported.size >= MAX_REPORTED) continue;
      this.#reported.add(keyword);
      this.#options.onIgnored(keyword);
    }
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

/** Takes signals that are not aborted yet. Always call `forget`: some signals live as long as the server. */
function firstOf(signals: readonly AbortSignal[]): { aborted: Promise<null>; forget(): void } {
  let abort = () => {};
  const aborted = new Promise<null>((resolve) => {
    abort = () => resolve(null);
  });
  for (const signal of signals) signal.addEventListener("abort", abort);
  return {
    aborted,
    forget() {
      for (const signal of signals) signal.removeEventListener("abort", abort);
    },
  };
}

function sizeOf(outcome: Outcome): number {
  return ENTRY_SIZE + ("key" in outcome ? outcome.key.length : outcome.refused.length);
}

/** Omits `param`, which does not affect the grammar. */
function asText({ shape, reasoning, param }: Constraint): string {
  try {
    const output: ConstrainedOutput = { shape, reasoning };
    return JSON.stringify(output);
  } catch (error) {
    if (error instanceof RangeError) throw new ConstraintError(TOO_DEEP, param);
    throw error;
  }
}
