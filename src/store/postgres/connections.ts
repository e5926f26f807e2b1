// Connections to PostgreSQL, what its errors mean for us, and our statements as its driver takes them.

import { createHash } from "node:crypto";
import pg from "pg";
import { StoreUnreachable } from "../../errors/faults.ts";
import type { SqlValue } from "../store.ts";
import { whyNoTls, withTls } from "./tls.ts";

// What the errors of PostgreSQL and its driver mean for us.

/** A code of five characters is the server's (SQLSTATE), another one is the operating system's. */
function codeOf(error: unknown): string {
  return String((error as { code?: unknown } | null)?.code ?? "");
}

/** Two transactions got in each other's way. The one that failed can run again. */
export function lostRace(error: unknown): boolean {
  return ["40001", "40P01"].includes(codeOf(error));
}

/** A row with this key is there already. Run again, the transaction sees it, unless it never looks. */
export function isDuplicate(error: unknown): boolean {
  return codeOf(error) === "23505";
}

/** The server ends the connection: it shuts down, it crashed, or the transaction was idle for too long. */
const SERVER_ENDS = /^(57P0[1-5]|25P03|08...)$/;

/** The driver's own words, which have no code. */
const DRIVER_NOT_SENT = "not queryable";
const DRIVER_LOST = new RegExp(`Connection terminated|${DRIVER_NOT_SENT}|read timeout`);

/** At a start: nobody answers, or somebody else. */
const DRIVER_UNANSWERED = /Connection terminated|timeout expired|establishing an SSL connection/;

/** The connection is gone, or its server is silent. What was sent last may have been done. */
export function lostConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = codeOf(error);
  return SERVER_ENDS.test(code) || /^E[A-Z]+$/.test(code) || DRIVER_LOST.test(error.message);
}

/**
 * The server does not have the statement that this connection prepared, or has one that it did not: a pooler such as
 * PgBouncer gives each transaction another connection to the server. Nothing was done.
 */
export function isPooled(error: unknown): boolean {
  return ["26000", "42P05"].includes(codeOf(error));
}

/** The connection was lost before this statement. */
export function wasNotSent(error: unknown): boolean {
  return error instanceof Error && error.message.includes(DRIVER_NOT_SENT);
}

/** The server gave up a statement that took too long. */
export function isTooSlow(error: unknown): boolean {
  return codeOf(error) === "57014";
}

/** Why a database cannot be used, for the operator. `name`: of the database. */
export function whyUnusable(error: unknown, name: string): string {
  const noTls = whyNoTls(error);
  if (noTls !== null) return noTls;
  const message = error instanceof Error ? error.message || codeOf(error) : String(error);
  switch (codeOf(error)) {
    case "28P01":
    case "28000":
      return `${message}: check the user and the password`;
    case "3D000":
      return `it does not exist: create it with \`createdb ${name}\``;
    case "ECONNREFUSED":
    case "ENOENT":
      return `${message}: is PostgreSQL running there?`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `${message}: check the host`;
    case "42501":
      return `${message}: its user must be allowed to create tables`;
    case "":
      return DRIVER_UNANSWERED.test(message)
        ? `${message}: check the host and the port: no PostgreSQL answers there`
        : message;
    default:
      return message;
  }
}

// What differs between our SQL and that of PostgreSQL's driver: the names of parameters and the type of large numbers.

const INT8 = 20;

interface Statement {
  text: string;
  name: string;
}

/** By our SQL. There are few: their texts do not depend on values. */
const STATEMENTS = new Map<string, Statement>();

/**
 * Writes ?1 as $1. Our statements have no question marks besides. `prepares`: every connection plans the statement once,
 * under a name that nothing else can have. Planning takes longer than most of our statements.
 */
export function queryOf(sql: string, values: SqlValue[], prepares: boolean): pg.QueryConfig {
  let statement = STATEMENTS.get(sql);
  if (statement === undefined) {
    const text = sql.replace(/\?(\d+)/g, "$$$1");
    if (text.includes("?")) throw new Error(`parameters are written ?1, ?2 and so on: ${sql}`);
    statement = { text, name: createHash("sha256").update(text).digest("hex").slice(0, 32) };
    STATEMENTS.set(sql, statement);
  }
  const { text, name } = statement;
  return prepares ? { name, text, values } : { text, values };
}

/** Rows have plain numbers, as those of SQLite do. */
const ROW_TYPES: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary") =>
    oid === INT8 ? readInt8 : pg.types.getTypeParser(oid, format as "text")) as pg.CustomTypesConfig["getTypeParser"],
};

function readInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new Error(`the database has a number that is too large: ${text}`);
  return value;
}

// When the server is unreachable, calls wait for it a moment and then fail; all of them together try
// it again with growing pauses, so that many waiting calls do not become many attempts.

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

/** The pool's own limit is off: it would count waiting for a busy server as a server that is unreachable. */
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

  /** Throws StoreUnreachable. Whoever takes a connection releases it, with the error if it was lost. */
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
        if (error instanceof StoreUnreachable) throw error;
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

export function unavailable(cause: unknown): StoreUnreachable {
  return new StoreUnreachable("the database cannot be used now", { cause });
}
