// What a workspace has on disk, in bytes: one account for everything that its training puts there. The account is the sum of
// rows that are there anyway, so no counter can drift. Only what is being written, and has no such row yet, has a row of
// its own: a reservation. It belongs to a server, and expires when that is gone for long enough that its files are too.
//
// What makes an account larger locks it first, and then looks: two servers cannot both take what is left.
import { DATABASE_NOW, type Statements } from "../store.ts";

/** In bytes. */
export interface AccountUse {
  /** Steps of the workspace's models, with their metrics. */
  steps: number;
  /** Steps and gradients that were deleted and whose files are still there. */
  deleted: number;
  /** Open jobs: their data, and what they will leave. */
  openJobs: number;
  /** Gradients that wait for an optimizer step. */
  gradients: number;
  /** What jobs were trained on. */
  records: number;
  /** Reports, events and curves of jobs, and results of operations. */
  results: number;
  /** What is being written. */
  reserved: number;
}

export function totalOf(use: AccountUse): number {
  return Object.values(use).reduce((sum, bytes) => sum + bytes, 0);
}

const sum = (bytes: string, from: string) => `(SELECT CAST(COALESCE(SUM(${bytes}), 0) AS BIGINT) FROM ${from})`;

const USE = `SELECT
  ${sum("bytes + metric_bytes", "steps JOIN models ON models.id = model_id WHERE owner = ?1")} AS steps,
  ${sum("bytes", "removed_steps WHERE owner = ?1")} AS deleted,
  ${sum("open_bytes", "jobs WHERE owner = ?1 AND status IN ('PENDING', 'RUNNING')")} AS "openJobs",
  ${sum("gradient_bytes", "jobs WHERE owner = ?1")} AS gradients,
  ${sum("record_bytes", "jobs WHERE owner = ?1")} AS records,
  ${sum("result_bytes", "jobs WHERE owner = ?1")} AS results,
  ${sum("bytes", "reservations WHERE owner = ?1")} AS reserved`;

export class AccountTable {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  async use(owner: string): Promise<AccountUse> {
    return (await this.#sql.get<AccountUse>(USE, owner))!;
  }

  /** Nobody else makes this account larger until the transaction ends. */
  async lock(owner: string): Promise<void> {
    const sql = `INSERT INTO accounts (owner, changes) VALUES (?1, 1)
      ON CONFLICT (owner) DO UPDATE SET changes = accounts.changes + 1`;
    await this.#sql.run(sql, owner);
  }

  /** Makes a reservation, or changes one. It lasts for `ms`, by the clock of the database. */
  async reserve(id: string, { owner, server, bytes, ms }: Reserved): Promise<void> {
    const sql = `INSERT INTO reservations (id, owner, server, bytes, until) VALUES (?1, ?2, ?3, ?4, ${DATABASE_NOW} + ?5)
      ON CONFLICT (id) DO UPDATE SET bytes = ?4, until = ${DATABASE_NOW} + ?5`;
    await this.#sql.run(sql, id, owner, server, bytes, ms);
  }

  async reserved(id: string): Promise<number> {
    const row = await this.#sql.get<{ bytes: number }>("SELECT bytes FROM reservations WHERE id = ?1", id);
    return row?.bytes ?? 0;
  }

  async release(id: string): Promise<void> {
    await this.#sql.run("DELETE FROM reservations WHERE id = ?1", id);
  }

  async idsOf(server: string): Promise<string[]> {
    const rows = await this.#sql.all<{ id: string }>("SELECT id FROM reservations WHERE server = ?1", server);
    return rows.map(({ id }) => id);
  }

  /** Extends those of a server. */
  async renew(server: string, ms: number): Promise<void> {
    await this.#sql.run(`UPDATE reservations SET until = ${DATABASE_NOW} + ?2 WHERE server = ?1`, server, ms);
  }

  async releaseExpired(): Promise<void> {
    await this.#sql.run(`DELETE FROM reservations WHERE until < ${DATABASE_NOW}`);
  }

  async releaseAll(): Promise<void> {
    await this.#sql.run("DELETE FROM reservations");
  }
}

export interface Reserved {
  owner: string;
  server: string;
  bytes: number;
  ms: number;
}
