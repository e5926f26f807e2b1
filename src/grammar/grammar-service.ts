// Constraints to keys of compiled grammars, away from both the HTTP and the engine thread. Bounded in time and memory per
// constraint: what exceeds a bound is refused and its worker thread replaced; other compilations wait for nothing but a
// free worker. Results are cached by content, refusals included, except for taking too long: that may have been the
// machine's fault. What nobody waits for any more is not begun.

import { createHash } from "node:crypto";
import { CompileThread } from "./compile-thread.ts";
import { type ConstrainedOutput, type Constraint, ConstraintError } from "./constraint.ts";
import { TOO_DEEP } from "./grammar-error.ts";

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
  /** Told once about every schema keyword that no draft knows and that therefore has no effect. */
  onIgnored?: (keyword: string) => void;
}

export interface CompiledGrammar {
  /** What GenerateRequest.grammar takes. */
  key: string;
}

type Outcome = { key: string } | { refused: string; late: boolean };

/** One compilation for everybody who asks for the same at once. */
interface Compilation {
  /** null: given up before it began. */
  outcome: Promise<Outcome | null>;
  askers: number;
  /** false: it has begun, and goes on. */
  giveUp(): boolean;
}

interface Waiting {
  /** Characters of the constraint. */
  size: number;
  /** null: given up. */
  start(thread: CompileThread | null): void;
}

/** Bookkeeping of one cache entry, so that many tiny ones count too. */
const ENTRY_SIZE = 512;

/** Whoever makes up keywords fills no log. */
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
   * Rejects with ConstraintError when the constraint cannot be used; anything else is a fault of the service. null when one
   * of `leaving` was aborted first.
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
      // Not to be joined any more: those who ask from now on want it.
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
    outcome.then(ended, () => ended(null)); // a fault is for those who wait for the outcome itself
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

  /** Claimed for the caller before this returns if one is free; else in its turn, unless it is given up (null). */
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

/** Of signals that are not aborted yet. `forget` must be called: some of the signals live as long as the server. */
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

/** Without `param`, which does not change the grammar. */
function asText({ shape, reasoning, param }: Constraint): string {
  try {
    const output: ConstrainedOutput = { shape, reasoning };
    return JSON.stringify(output);
  } catch (error) {
    if (error instanceof RangeError) throw new ConstraintError(TOO_DEEP, param);
    throw error;
  }
}
