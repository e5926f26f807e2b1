// Watches the engine: once a second it reads the counters and keeps a point of history, for 15 minutes, and the last steps.
// All who watch share what it reads.
import { type Static, Type } from "typebox";
import type { Engine, EngineStats, EngineStep } from "../../engine/contract.ts";
import type { LiveRequest, LiveRequests } from "../generation/live-requests.ts";
import { isAdmin, type Principal } from "../http/auth.ts";
import { nullable } from "../schema/body.ts";
import { presentReplicas, type Service } from "../service.ts";

// What the routes that watch the engine answer.

const Time = Type.Number({ description: "Milliseconds since 1970." });
const Count = Type.Integer();

const RequestRow = Type.Object(
  {
    id: Type.String({ description: "As in the x-request-id header of its reply." }),
    who: Type.String({ description: "The name of its token." }),
    model: nullable(Type.String()),
    state: Type.Enum(["waiting", "prefill", "decoding"]),
    prompt: Count,
    cached: nullable(Count),
    output: Count,
    choices: Count,
    age_ms: Type.Number(),
    priority: Type.Integer(),
  },
  { title: "RunningRequest" },
);

const HistoryPointBody = Type.Object({
  at: Time,
  running: Count,
  waiting: Count,
  tokens_per_s: Type.Number(),
  prompt_tokens_per_s: Type.Number(),
  cache: Type.Number({ description: "Fraction of the key/value memory in use." }),
  ttft_p50: nullable(Type.Number({ description: "Milliseconds; null without a first token in this second." })),
  ttft_p99: nullable(Type.Number()),
});

const AdapterRow = Type.Object({
  name: nullable(Type.String()),
  requests: Count,
  idle_seconds: Type.Number({ description: "How long no request has run on it." }),
});

export const EngineBody = Type.Object(
  {
    object: Type.Literal("engine"),
    now: Time,
    running: Count,
    waiting: Count,
    preemptions: Count,
    cache: Type.Object({
      used: nullable(Type.Integer({ description: "Tokens." })),
      total: nullable(Count),
      fraction: Type.Number({ description: "0 to 1." }),
    }),
    prefix: Type.Object({ queries: Count, hits: Count }, { description: "Prompt tokens since the start." }),
    adapters: Type.Array(nullable(AdapterRow), {
      description: "One per slot; null = free. Names of policies are shown to their workspace and to admins.",
    }),
    replicas: Type.Array(Type.Object({ name: Type.String(), state: Type.String(), in_flight: Count }), {
      description: "In the order of --engine-url. Admins see URLs as names.",
    }),
    requests: Type.Array(RequestRow, { description: "The caller's own, oldest first; for admins, all." }),
    history: Type.Array(HistoryPointBody, { description: "One per second, the last 900." }),
    steps: Type.Array(
      Type.Object({
        at: Time,
        decode: Type.Integer({ description: "Sequences that got their next token." }),
        prefill: Type.Integer({ description: "Tokens of prompts." }),
      }),
      { description: "The last 4,096 of an embedded engine. Empty for remote engines and several engines." },
    ),
  },
  { title: "Engine" },
);

// The state of the engine as a caller may see it.

/** What everybody may see of this moment, and rows that depend on who looks. Made once for all who watch. */
export class EngineSnapshot {
  readonly #service: Service;
  readonly #shared: string;
  /** `named`: by name, for admins. */
  readonly #replicas: { public: string; named: string };
  readonly #rows: { caller: string; json: string }[];

  constructor(service: Service, stats: EngineStats = service.engine.stats()) {
    this.#service = service;
    const { cacheTokens } = service.engine.info;
    const shared = {
      ...{ object: "engine", now: Date.now(), running: stats.running, waiting: stats.waiting },
      preemptions: stats.preemptions,
      cache: {
        used: cacheTokens === null ? null : Math.round(stats.kvUsage * cacheTokens),
        ...{ total: cacheTokens, fraction: stats.kvUsage },
      },
      prefix: { queries: stats.prefixQueries, hits: stats.prefixHits },
    };
    const replicas = service.engine.replicas?.() ?? [];
    this.#replicas = {
      public: JSON.stringify(presentReplicas(replicas, false)),
      named: JSON.stringify(presentReplicas(replicas, true)),
    };
    this.#shared = JSON.stringify(shared).slice(0, -1);
    const live = service.live.all();
    const states = statesOf(live, stats.waiting);
    this.#rows = live.map((request, i) => ({
      caller: request.caller.id,
      json: JSON.stringify(presentRequest(request, states[i]!)),
    }));
  }

  /** JSON of an object without its end: the caller may add fields. */
  for(caller: Principal): string {
    const all = isAdmin(caller);
    const rows = this.#rows.filter((row) => all || row.caller === caller.id).map(({ json }) => json);
    const adapters = JSON.stringify(presentAdapters(this.#service, caller));
    const replicas = all ? this.#replicas.named : this.#replicas.public;
    return `${this.#shared},"replicas":${replicas},"adapters":${adapters},"requests":[${rows.join(",")}]`;
  }
}

function presentRequest(request: LiveRequest, state: string) {
  const { id, caller, model, prompt, cached, output, choices, priority } = request;
  const age_ms = Math.round(performance.now() - request.since);
  return { id, who: caller.name, model, state, prompt, cached, output, choices, age_ms, priority };
}

/**
 * The engine tells how many choices wait, not which. Those without output that came last are taken to wait; before them
 * are those whose prompts are being computed.
 */
function statesOf(live: readonly LiveRequest[], waiting: number): ("waiting" | "prefill" | "decoding")[] {
  let left = waiting;
  const states = [...live].reverse().map(({ cached, output, prompt, choices }) => {
    if (cached !== null || output > 0) return "decoding";
    if (prompt === 0) return "waiting"; // not in the engine yet
    left -= choices;
    return left + choices > 0 ? "waiting" : "prefill";
  });
  return states.reverse() as ("waiting" | "prefill" | "decoding")[];
}

function presentAdapters(service: Service, caller: Principal) {
  const { adapterSlots, models, live, engine } = service;
  const operators = new Map(models.adapters().map(({ name, version }) => [version, name]));
  const loaded = adapterSlots.list().map(({ version, steps, requests, idleMs }) => {
    const asked = live.nameOf(version);
    const seen = asked && (isAdmin(caller) || asked.caller === caller.id) ? asked.model : null;
    // steps with the same content share a slot; the newest gives its name
    const step = steps.map((folder) => service.stepName?.(folder, caller) ?? null).findLast((name) => name !== null);
    return { name: operators.get(version) ?? step ?? seen, requests, idle_seconds: idleMs / 1000 };
  });
  const free = Math.max(0, engine.info.maxLoras - loaded.length);
  return [...loaded, ...new Array<null>(free).fill(null)];
}

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
