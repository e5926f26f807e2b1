// The state of the engine as a caller may see it.

import type { EngineStats } from "../../engine/contract.ts";
import { replicaAlias } from "../../engine/fleet/replica.ts";
import { isAdmin, type Principal } from "../http/auth.ts";
import type { LiveRequest } from "../run/live-requests.ts";
import type { Service } from "../service.ts";

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

/** In the order of --engine-url. Names may be addresses, so only admins see them. */
function presentReplicas(replicas: readonly { name: string; state: string; inFlight: number }[], named: boolean) {
  return replicas.map(({ name, state, inFlight }, index) => ({
    name: named ? name : replicaAlias(index),
    ...{ state, in_flight: inFlight },
  }));
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

function presentAdapters({ adapterSlots, models, live, engine }: Service, caller: Principal) {
  const operators = new Map(models.adapters().map(({ name, version }) => [version, name]));
  const loaded = adapterSlots.list().map(({ version, requests, idleMs }) => {
    const asked = live.nameOf(version);
    const seen = asked && (isAdmin(caller) || asked.caller === caller.id) ? asked.model : null;
    return { name: operators.get(version) ?? seen, requests, idle_seconds: idleMs / 1000 };
  });
  const free = Math.max(0, engine.info.maxLoras - loaded.length);
  return [...loaded, ...new Array<null>(free).fill(null)];
}
