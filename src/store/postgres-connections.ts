// Connections to PostgreSQL. When the server is away, calls wait for it a moment and then fail; all of them together try
// it again with growing pauses, so that many waiting calls do not become many attempts.

import pg from "pg";
import { StoreUnavailable } from "../errors/faults.ts";
import { ROW_TYPES } from "./postgres-sql.ts";
import { withTls } from "./postgres-tls.ts";

/** How long a call waits for a server that cannot be reached. */
export const UNREACHABLE_MS = 3_000;
/** How long a statement may take, and a call may wait for others to give back a connection. */
export const STATEMENT_MS = 10_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;
const MAX_CONNECTIONS = 10;

/** What all our connections have in common. There are no settings that PgBouncer would refuse. Throws OperatorError. */
export function clientConfig(url: string): pg.ClientConfig {
  return {
    ...withTls(url),
    application_name: "flywheel",
    connectionTimeoutMillis: UNREACHABLE_MS,
    query_timeout: STATEMENT_MS,
    keepAlive: true,
    types: ROW_TYPES,
  };
}

/** The pool's own limit is off: it would count waiting for a busy server as a server that is away. */
class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super({ ...config, connectionTimeoutMillis: UNREACHABLE_MS });
    // Whoever uses the connection hears of its end from a call. Without a listener the process would end.
    this.on("error", () => {});
  }
}

export class PostgresConnections {
  readonly #pool: pg.Pool;
  /** Why the last attempt to connect failed; null = it did not. */
  #fault: Error | null = null;
  #pauseMs = 0;
  /** When to try again, in milliseconds of performance.now(). */
  #tryAt = 0;

  constructor(url: string) {
    const { connectionTimeoutMillis: _, ...config } = clientConfig(url);
    this.#pool = new pg.Pool({ ...config, Client, max: MAX_CONNECTIONS });
    // The pool drops idle connections that end, and the next call makes a new one.
    this.#pool.on("error", () => {});
  }

  /** Throws StoreUnavailable. Whoever takes a connection releases it, with the error if it was lost. */
  async take(): Promise<pg.PoolClient> {
    const since = performance.now();
    for (;;) {
      await this.#pause(since);
      try {
        const client = await this.#waitFor(this.#pool.connect(), since);
        this.#fault = null;
        this.#pauseMs = 0;
        return client;
      } catch (error) {
        if (error instanceof StoreUnavailable) throw error;
        if (this.#pool.ending) throw new Error("the database is closed");
        this.#failed(error as Error);
      }
    }
  }

  /** Waits for the calls that have a connection. */
  async close(): Promise<void> {
    if (!this.#pool.ending) await this.#pool.end();
  }

  /** Waits until it is time for the next attempt, or fails because the call has waited long enough. */
  async #pause(since: number): Promise<void> {
    if (this.#fault === null) return;
    const now = performance.now();
    const limit = since + UNREACHABLE_MS;
    if (this.#tryAt > now) await new Promise((resolve) => setTimeout(resolve, Math.min(this.#tryAt, limit) - now));
    if (performance.now() >= limit) throw unavailable(this.#fault);
  }

  /** Several attempts that fail together count as one. */
  #failed(fault: Error): void {
    const now = performance.now();
    if (this.#fault !== null && now < this.#tryAt) return;
    this.#fault = fault;
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, this.#pauseMs * 2));
    this.#tryAt = now + this.#pauseMs;
  }

  /** Gives up on a connection that comes too late, and gives it back when it comes. */
  async #waitFor(connecting: Promise<pg.PoolClient>, since: number): Promise<pg.PoolClient> {
    let timer: NodeJS.Timeout | undefined;
    let late = false;
    const tooLate = new Promise<never>((_resolve, reject) => {
      const giveUp = (why: Error) => {
        late = true;
        reject(unavailable(why));
      };
      timer = setTimeout(
        () => {
          if (this.#fault !== null) return giveUp(this.#fault);
          const busy = new Error("all connections are busy");
          timer = setTimeout(() => giveUp(this.#fault ?? busy), STATEMENT_MS - UNREACHABLE_MS);
        },
        since + UNREACHABLE_MS - performance.now(),
      );
    });
    connecting.then(
      (client) => late && client.release(),
      () => {},
    );
    try {
      return await Promise.race([connecting, tooLate]);
    } finally {
      clearTimeout(timer);
    }
  }
}

export function unavailable(cause: unknown): StoreUnavailable {
  return new StoreUnavailable("the database cannot be used now", { cause });
}
