// Compiles constraints to grammar keys, off the HTTP and engine threads. Each constraint has a time and a memory limit;
// one that exceeds a limit is refused and its worker thread replaced. Other compilations wait only for a free worker.
// Results are cached by content. Refusals are cached too, except timeouts, which may be the machine's fault. A queued
// compilation is dropped when nobody waits for it any more.

import { createHash } from "node:crypto";
import { CompileThread } from "./compile-thread.ts";
import { type ConstrainedOutput, type Constraint, ConstraintError } from "./constraint.ts";
import { TOO_DEEP } from "./grammar-error.ts";

export interface GrammarServiceOptions {
  /** Number of constraints compiled at once. */
  threads?: number;
  /** Time limit for one constraint. */
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
  /** null if it was dropped before it started. */
  outcome: Promise<Outcome | null>;
  askers: number;
  /** Drops the compilation. Returns false if it has already started; it then runs to its end. */
  giveUp(): boolean;
}

interface Waiting {
  /** Length of the constraint in characters. */
  size: number;
  /** Takes null if the compilation was dropped. */
  start(thread: CompileThread | null): void;
}

/** Overhead of one cache entry, so that many tiny entries count too. */
const ENTRY_SIZE = 512;

/** Limits the log lines that made-up keywords can cause. */
const MAX_REPORTED = 1000;

export class GrammarService {
  readonly #options: Required<GrammarServiceOptions>;
  readonly #threads: CompileThread[] = [];
  readonly #waiting: Waiting[] = [];
  readonly #cache = new Map<string, Outcome>();
  readonly #running = new Map<string, Compilation>();
  readonly #reported = new Set<string>();
  #cached = 0;
  #closed = false;

  constructor(options: GrammarServiceOptions = {}) {
    this.#options = {
      threads: options.threads ?? 2,
      timeoutMs: options.timeoutMs ?? 5000,
      memoryMb: options.memoryMb ?? 512,
      cacheSize: options.cacheSize ?? 64 * 2 ** 20,
      onCompiled: options.onCompiled ?? (() => {}),
      onIgnored: options.onIgnored ?? (() => {}),
    };
  }

  /**
   * Rejects with ConstraintError when the constraint cannot be used; any other rejection is an internal fault. Returns
   * null when one of `leaving` aborts first.
   */
  async compile(constraint: Constraint, leaving: readonly AbortSignal[] = []): Promise<CompiledGrammar | null> {
    const source = asText(constraint);
    const hash = createHash("sha256").update(source).digest("base64");
    const outcome = this.#recall(hash) ?? (await this.#outcomeFor(hash, source, leaving));
    if (outcome === null) return null;
    if ("refused" in outcome) throw new ConstraintError(outcome.refused, constraint.param);
    return { key: outcome.key };
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }

  async #outcomeFor(hash: string, source: string, leaving: readonly AbortSignal[]): Promise<Outcome | null> {
    if (leaving.some(({ aborted }) => aborted)) return null;
    const compilation = this.#running.get(hash) ?? this.#begin(hash, source);
    compilation.askers++;
    const left = firstOf(leaving);
    try {
      return await Promise.race([compilation.outcome, left.aborted]);
    } finally {
      left.forget();
      // Nobody may join a dropped compilation: later callers start their own.
      if (--compilation.askers === 0 && compilation.giveUp()) this.#running.delete(hash);
    }
  }

  #begin(hash: string, source: string): Compilation {
    const { thread, giveUp } = this.#freeThread(source.length);
    const outcome = this.#compile(source, thread);
    const compilation: Compilation = { outcome, askers: 0, giveUp };
    this.#running.set(hash, compilation);
    const ended = (result: Outcome | null) => {
      if (this.#running.get(hash) === compilation) this.#running.delete(hash);
      if (result !== null && ("key" in result || !result.late)) this.#remember(hash, result);
    };
    outcome.then(ended, () => ended(null)); // those who await the outcome handle the fault
    return compilation;
  }

  async #compile(source: string, claimed: Promise<CompileThread | null>): Promise<Outcome | null> {
    const thread = await claimed;
    if (thread === null) return null;
    const started = performance.now();
    try {
      const outcome = await thread.run(source);
      if ("ignored" in outcome) this.#report(outcome.ignored);
      return outcome;
    } finally {
      this.#options.onCompiled(performance.now() - started);
      const next = this.#nextWaiting();
      if (next) next.start(thread);
      else thread.busy = false;
    }
  }

  #report(keywords: readonly string[]): void {
    for (const keyword of keywords) {
      if (this.#reported.has(keyword) || this.#reported.size >= MAX_REPORTED) continue;
      this.#reported.add(keyword);
      this.#options.onIgnored(keyword);
    }
  }

  /** Claims an idle thread before it returns. If none is idle, the caller queues; null means it gave up waiting. */
  #freeThread(size: number): { thread: Promise<CompileThread | null>; giveUp(): boolean } {
    if (this.#closed) throw new Error("the grammar service is closed");
    const idle = this.#threads.find((thread) => !thread.busy);
    if (!idle && this.#threads.length >= this.#options.threads) {
      const waiting: Waiting = { size, start: () => {} };
      this.#waiting.push(waiting);
      return {
        thread: new Promise((start) => {
          waiting.start = start;
        }),
        giveUp: () => {
          const at = this.#waiting.indexOf(waiting);
          if (at < 0) return false;
          this.#waiting.splice(at, 1);
          waiting.start(null);
          return true;
        },
      };
    }
    const thread = idle ?? new CompileThread(this.#options.timeoutMs, this.#options.memoryMb);
    if (!idle) this.#threads.push(thread);
    thread.busy = true;
    return { thread: Promise.resolve(thread), giveUp: () => false };
  }

  /** The smallest goes first, so a client that sends many huge constraints does not hold up the others. */
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
