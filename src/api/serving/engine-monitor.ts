// Watches the engine: once a second it reads the counters and keeps a point of history, for 15 minutes, and the last steps.
// All who watch share what it reads.

import type { Static } from "typebox";
import type { Engine, EngineStats, EngineStep } from "../../engine/contract.ts";
import type { LiveRequests } from "../run/live-requests.ts";
import type { HistoryPointBody } from "./engine.schema.ts";

const SECOND_MS = 1000;
const MOST_POINTS = 900;
const MOST_STEPS = 4096;

/** One second. */
export type HistoryPoint = Static<typeof HistoryPointBody>;

export interface Reading {
  stats: EngineStats;
  point: HistoryPoint;
  steps: readonly EngineStep[];
}

export class EngineMonitor {
  readonly #engine: Pick<Engine, "stats" | "steps">;
  readonly #live: LiveRequests;
  readonly #watchers = new Set<(reading: Reading) => void>();
  readonly #points: HistoryPoint[] = [];
  readonly #steps: EngineStep[] = [];
  readonly #timer: NodeJS.Timeout;
  #stats: EngineStats;
  #seenSteps: number;
  #readAt = Date.now();

  constructor(engine: Pick<Engine, "stats" | "steps">, live: LiveRequests) {
    this.#engine = engine;
    this.#live = live;
    this.#stats = engine.stats();
    this.#seenSteps = this.#stats.steps;
    this.#timer = setInterval(() => this.read(), SECOND_MS).unref();
  }

  get history(): readonly HistoryPoint[] {
    return this.#points;
  }

  get steps(): readonly EngineStep[] {
    return this.#steps;
  }

  /** Calls `watcher` after every reading, until the returned function is called. */
  watch(watcher: (reading: Reading) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#watchers.clear();
  }

  /** By itself once a second. */
  read(now: number = Date.now()): void {
    const before = this.#stats;
    const stats = this.#engine.stats();
    const seconds = Math.max((now - this.#readAt) / SECOND_MS, 1e-3);
    const steps = this.#engine.steps?.(this.#seenSteps) ?? [];
    const first = this.#live.takeFirstTokens().sort((a, b) => a - b);
    const point: HistoryPoint = {
      ...{ at: now, running: stats.running, waiting: stats.waiting, cache: stats.kvUsage },
      tokens_per_s: (stats.generatedTokens - before.generatedTokens) / seconds,
      prompt_tokens_per_s: (stats.promptTokens - before.promptTokens) / seconds,
      ...{ ttft_p50: quantile(first, 0.5), ttft_p99: quantile(first, 0.99) },
    };
    this.#stats = stats;
    this.#seenSteps = stats.steps;
    this.#readAt = now;
    append(this.#points, [point], MOST_POINTS);
    append(this.#steps, steps, MOST_STEPS);
    for (const watcher of this.#watchers) watcher({ stats, point, steps });
  }
}

function append<T>(list: T[], more: readonly T[], most: number): void {
  list.push(...more);
  if (list.length > most) list.splice(0, list.length - most);
}

/** Of sorted values; null without any. */
function quantile(sorted: readonly number[], q: number): number | null {
  return sorted.length === 0 ? null : sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))]!;
}
