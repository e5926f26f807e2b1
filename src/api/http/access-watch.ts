// Ends what is open when its caller's token is revoked or expires, or their session ends. The store is asked once a second
// for each token with something open, so it does not matter on which server that happened.
import type { FastifyRequest } from "fastify";
import { ServiceError } from "../../errors/service-error.ts";
import { type Authenticator, credentialsOf } from "./auth.ts";

const CHECK_MS = 1000;

/** `why`: the 401 that the caller would get now. */
export type AccessEnded = (why: ServiceError) => void;

export class AccessWatch {
  readonly #auth: Pick<Authenticator, "authenticate">;
  /** By credentials. */
  readonly #watched = new Map<string, Set<AccessEnded>>();
  #timer: NodeJS.Timeout | null = null;
  #checking = false;

  constructor(auth: Pick<Authenticator, "authenticate">) {
    this.#auth = auth;
  }

  /** Calls `ended` once when the caller may not go on, unless the returned function was called before. */
  watch(request: Pick<FastifyRequest, "headers">, ended: AccessEnded): () => void {
    const credentials = credentialsOf(request) ?? "";
    const watchers = this.#watched.get(credentials) ?? new Set();
    this.#watched.set(credentials, watchers.add(ended));
    this.#timer ??= setInterval(() => void this.#check(), CHECK_MS).unref();
    return () => {
      watchers.delete(ended);
      if (watchers.size === 0 && this.#watched.get(credentials) === watchers) this.#forget(credentials);
    };
  }

  async #check(): Promise<void> {
    if (this.#checking) return; // the database is slow
    this.#checking = true;
    await Promise.all([...this.#watched.keys()].map((credentials) => this.#checkOne(credentials)));
    this.#checking = false;
  }

  async #checkOne(credentials: string): Promise<void> {
    const why = await this.#auth.authenticate(credentials).then(
      () => null,
      (error: unknown) => error,
    );
    // a database that is away says nothing about a token
    if (!(why instanceof ServiceError) || why.status !== 401) return;
    const watchers = [...(this.#watched.get(credentials) ?? [])];
    this.#forget(credentials);
    for (const ended of watchers) ended(why);
  }

  #forget(credentials: string): void {
    this.#watched.delete(credentials);
    if (this.#watched.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }
}
