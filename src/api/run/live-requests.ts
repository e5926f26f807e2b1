// The requests in progress, for those who watch the server: who sent each, how far it is, and a way to end it. They enter
// and leave with their admission.

import type { Principal } from "../http/auth.ts";
import type { ServedModel } from "./served-model.ts";

/** First tokens to remember until somebody takes them. */
const MOST_FIRST_TOKENS = 10_000;

export class LiveRequest {
  readonly id: string;
  readonly caller: Principal;
  readonly choices: number;
  /** performance.now() */
  readonly since = performance.now();
  model: string | null = null;
  priority = 0;
  /** Tokens: of its prompts, of these from the prefix cache (null = not known yet), and generated. */
  prompt = 0;
  cached: number | null = null;
  output = 0;
  readonly #ends: (() => void)[] = [];

  constructor(id: string, caller: Principal, choices: number) {
    this.id = id;
    this.caller = caller;
    this.choices = choices;
  }

  /** Part of it goes to the engine. `cancel` ends that part with an error for the client. */
  begins(promptTokens: number, priority: number, cancel: () => void): void {
    this.prompt += promptTokens;
    this.priority = priority;
    this.#ends.push(cancel);
  }

  /** Its prompt is computed. */
  prefilled(cachedTokens: number): void {
    this.cached = (this.cached ?? 0) + cachedTokens;
  }

  cancel(): void {
    for (const end of this.#ends) end();
  }
}

export class LiveRequests {
  readonly #requests = new Map<string, LiveRequest>();
  /** Adapter version → the name that it was last asked for under, and by whom. */
  readonly #names = new Map<string, { model: string; caller: string }>();
  #firstTokens: number[] = [];

  /** Clients may choose ids, so one may be there twice. */
  enter(id: string, caller: Principal, choices: number): LiveRequest {
    let unique = id;
    for (let n = 2; this.#requests.has(unique); n++) unique = `${id}.${n}`;
    const live = new LiveRequest(unique, caller, choices);
    this.#requests.set(unique, live);
    return live;
  }

  runsOn(live: LiveRequest, { name, adapter }: Pick<ServedModel, "name" | "adapter">): void {
    live.model = name;
    if (adapter === null) return;
    this.#names.delete(adapter);
    this.#names.set(adapter, { model: name, caller: live.caller.id });
    // the oldest names are of adapters that are long gone
    if (this.#names.size > 1000) this.#names.delete(this.#names.keys().next().value!);
  }

  leave({ id }: LiveRequest): void {
    this.#requests.delete(id);
  }

  get(id: string): LiveRequest | undefined {
    return this.#requests.get(id);
  }

  all(): LiveRequest[] {
    return [...this.#requests.values()];
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
