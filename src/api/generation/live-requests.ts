// The requests in progress, for those who watch the server: who sent each, how far it is, and a way to end it. They enter
// before they are read, which takes long if a conversation is loaded.
import type { ServiceError } from "../../errors/service-error.ts";
import { isAdmin, type Principal } from "../http/auth.ts";
import type { ModelLease } from "../models/model-registry.ts";

/** First tokens to remember until somebody takes them. */
const MOST_FIRST_TOKENS = 10_000;

export class LiveRequest {
  /** As its client knows it. Clients choose ids, so several requests may have the same. */
  id: string;
  readonly caller: Principal;
  /** 0 until it has been read. */
  choices = 0;
  /** performance.now() */
  readonly since = performance.now();
  model: string | null = null;
  priority = 0;
  /** Tokens: of its prompts, of these from the prefix cache (null = not known yet), and generated. */
  prompt = 0;
  cached: number | null = null;
  output = 0;
  readonly #cancelling = new AbortController();

  constructor(id: string, caller: Principal) {
    this.id = id;
    this.caller = caller;
  }

  /** Aborted by `cancel`. The reason is the error for the client. */
  get cancelled(): AbortSignal {
    return this.#cancelling.signal;
  }

  /** Part of it goes to the engine. */
  begins(promptTokens: number, priority: number): void {
    this.prompt += promptTokens;
    this.priority = priority;
  }

  /** Its prompt is computed. */
  prefilled(cachedTokens: number): void {
    this.cached = (this.cached ?? 0) + cachedTokens;
  }

  /** Ends it, however far it is. `why` is the error for the client. */
  cancel(why: ServiceError): void {
    this.#cancelling.abort(why);
  }
}

export class LiveRequests {
  /** Oldest first. */
  readonly #requests = new Set<LiveRequest>();
  /** Adapter version → the name that it was last asked for under, and by whom. */
  readonly #names = new Map<string, { model: string; caller: string }>();
  #firstTokens: number[] = [];

  enter(id: string, caller: Principal): LiveRequest {
    const live = new LiveRequest(id, caller);
    this.#requests.add(live);
    return live;
  }

  runsOn(live: LiveRequest, { name, adapter }: Pick<ModelLease, "name" | "adapter">): void {
    live.model = name;
    if (adapter === null) return;
    this.#names.delete(adapter);
    this.#names.set(adapter, { model: name, caller: live.caller.id });
    // the oldest names are of adapters that are long gone
    if (this.#names.size > 1000) this.#names.delete(this.#names.keys().next().value!);
  }

  leave(live: LiveRequest): void {
    this.#requests.delete(live);
  }

  /** What the caller means by an id: its own requests of that id or, for an admin who has none, anybody's. */
  called(id: string, caller: Principal): LiveRequest[] {
    const found = this.all().filter((live) => live.id === id);
    const own = found.filter((live) => live.caller.id === caller.id);
    return own.length > 0 || !isAdmin(caller) ? own : found;
  }

  all(): LiveRequest[] {
    return [...this.#requests];
  }

  nameOf(adapter: string): { model: string; caller: string } | undefined {
    return this.#names.get(adapter);
  }

  /** `ms`: since the request came in. */
  firstToken(ms: number): void {
    if (this.#firstTokens.length < MOST_FIRST_TOKENS) this.#firstTokens.push(ms);
  }

  /** Times to the first token since the last call. */
  takeFirstTokens(): number[] {
    const taken = this.#firstTokens;
    this.#firstTokens = [];
    return taken;
  }
}
