// Which names are served and what they stand for: the base model under one or more names, adapters, and names that a source
// resolves (trained policies). A name is resolved to an adapter's content version when a request is admitted, so replacing an
// adapter never mixes two contents in one reply.
import { ServiceError } from "../../errors/service-error.ts";
import type { Principal } from "../http/auth.ts";

// The model that a request runs on, held until the request is over.
export interface ModelLease {
  /** What replies carry as `model`. */
  name: string;
  /** Content version of the adapter, or null for the base model. */
  adapter: string | null;
  /**
   * Output is meant for training. Every choice of a chat has log probabilities, `prompt_token_ids` and `token_ids`, and
   * tokens are written as ids, unless the request says otherwise. Text completions have the ids.
   */
  recordsForTraining: boolean;
  /** Step of a trained policy, shown as `policy_version` in every choice; null for anything else. */
  policyVersion: number | null;
  /** Call it once the request is over, however it ended. Until then the adapter stays loaded. */
  release(): void;
}

export interface ModelCard {
  id: string;
  created: number;
  root: string;
  parent: string | null;
}

/** Names that exist only for some callers or change over time. */
export interface ModelSource {
  /**
   * May load an adapter; throws 503 when no slot is free for it. `gone` gives a signal that aborts when the caller has
   * left; it is asked for only if the load has to wait.
   */
  resolve(name: string, principal: Principal, gone?: () => AbortSignal): Promise<ModelLease | null>;
  list(principal: Principal): Promise<ModelCard[]>;
  /** null = this caller gets nothing under this name. */
  card(name: string, principal: Principal): Promise<ModelCard | null>;
  /** Whether it answers to this name for anybody. */
  claims(name: string): Promise<boolean>;
}

export interface LoadedAdapter {
  name: string;
  path: string;
  version: string;
  created: number;
  /** Keeps it loaded until the returned function is called. */
  lease(): () => void;
}

export class ModelRegistry {
  readonly names: readonly string[];
  readonly #root: string;
  readonly #created = Math.floor(Date.now() / 1000);
  readonly #adapters = new Map<string, LoadedAdapter>();
  readonly #sources: ModelSource[] = [];
  /** Names of adapters that are being replaced. */
  readonly #replacing = new Map<string, Promise<unknown>>();

  /** `names`: at least one; the first is the one replies carry. `root`: where the weights come from. */
  constructor(names: readonly string[], root: string) {
    this.names = names;
    this.#root = root;
  }

  get baseName(): string {
    return this.names[0]!;
  }

  addSource(source: ModelSource): void {
    this.#sources.push(source);
  }

  /** Throws 404 for a name that is not served. Absent, null and "" mean the base model. */
  async resolve(name: string | null | undefined, principal: Principal, gone?: () => AbortSignal): Promise<ModelLease> {
    const plain = { recordsForTraining: false, policyVersion: null, release: () => {} };
    if (name === undefined || name === null || name === "" || this.names.includes(name)) {
      return { name: this.baseName, adapter: null, ...plain };
    }
    while (this.#replacing.has(name)) await this.#replacing.get(name);
    const adapter = this.#adapters.get(name);
    if (adapter !== undefined) return { name, adapter: adapter.version, ...plain, release: adapter.lease() };
    for (const source of this.#sources) {
      const model = await source.resolve(name, principal, gone);
      if (model !== null) return model;
    }
    throw new ServiceError("model_not_found", `The model \`${name}\` does not exist.`, { param: "model" });
  }

  /** Base names first, then adapters, then what sources offer this caller. */
  async cards(principal: Principal): Promise<ModelCard[]> {
    const base = this.names.map((id) => ({
      id,
      created: this.#created,
      root: this.#root,
      parent: null,
    }));
    const adapters = [...this.#adapters.values()].map(({ name, path, created }) => ({
      id: name,
      created,
      root: path,
      parent: this.baseName,
    }));
    const offered = await Promise.all(this.#sources.map((source) => source.list(principal)));
    return [...base, ...adapters, ...offered.flat()];
  }

  /** What this caller gets under this name; null = nothing. */
  async card(name: string, principal: Principal): Promise<ModelCard | null> {
    const listed = (await this.cards(principal)).find((card) => card.id === name);
    if (listed !== undefined) return listed;
    for (const source of this.#sources) {
      const card = await source.card(name, principal);
      if (card !== null) return card;
    }
    return null;
  }

  /** Whether the base model or a source answers to this name. An adapter of that name would hide it, or never be used. */
  async isTaken(name: string): Promise<boolean> {
    if (this.names.includes(name)) return true;
    for (const source of this.#sources) if (await source.claims(name)) return true;
    return false;
  }

  adapter(name: string): LoadedAdapter | undefined {
    return this.#adapters.get(name);
  }

  adapters(): LoadedAdapter[] {
    return [...this.#adapters.values()];
  }

  setAdapter(adapter: Omit<LoadedAdapter, "created">): void {
    this.#adapters.set(adapter.name, { ...adapter, created: Math.floor(Date.now() / 1000) });
  }

  /** Requests under this name wait until `work` is done. */
  async replacing<T>(name: string, work: () => Promise<T>): Promise<T> {
    const done = work();
    this.#replacing.set(
      name,
      done.catch(() => undefined),
    );
    try {
      return await done;
    } finally {
      this.#replacing.delete(name);
    }
  }

  removeAdapter(name: string): void {
    this.#adapters.delete(name);
  }
}
