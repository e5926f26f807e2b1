// The servers that use this store, each as it last said of itself. A server that stops takes its row away; the row of
// one that dies stays for a few minutes, so that operators see what is missing.
import { DATABASE_NOW, type Statements } from "../store.ts";

export interface ServerRecord {
  id: string;
  /** What it does: "all", "api" or "worker". */
  role: string;
  /** Where it listens. */
  address: string;
  version: string;
  facts: ServerFacts;
}

export interface ServerFacts {
  /** Names of the served base model. */
  models: readonly string[];
  /** The engines of a fleet. */
  replicas: readonly { name: string; state: string; inFlight: number }[];
}

export interface RunningJobFacts {
  id: string;
  modelId: string;
  /** Its workspace. */
  owner: string;
  kind: string;
  progress: number | null;
}

/** A server as others see it. */
export interface SeenServer extends ServerRecord {
  /** Since it was last heard of, by the clock of the database. */
  silentMs: number;
  running: RunningJobFacts[];
}

/** A server that was silent for longer may be gone: its leases have expired. */
export const ALIVE_MS = 30_000;

/** How long the row of a server that died stays, in milliseconds. */
const KEPT_MS = 5 * 60_000;

export class ServerTable {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  /** Says that this server is there, and forgets those that have been silent for long. */
  async beat({ id, role, address, version, facts }: ServerRecord): Promise<void> {
    await this.#sql.run(
      `INSERT INTO servers (id, role, address, version, seen_at, facts) VALUES (?1, ?2, ?3, ?4, ${DATABASE_NOW}, ?5)
       ON CONFLICT (id) DO UPDATE SET role = ?2, address = ?3, version = ?4, seen_at = ${DATABASE_NOW}, facts = ?5`,
      ...[id, role, address, version, JSON.stringify(facts)],
    );
    await this.#sql.run(`DELETE FROM servers WHERE seen_at < ${DATABASE_NOW} - ?1`, KEPT_MS);
  }

  async remove(id: string): Promise<void> {
    await this.#sql.run("DELETE FROM servers WHERE id = ?1", id);
  }

  /** By role and address. */
  async list(): Promise<SeenServer[]> {
    type Row = Omit<SeenServer, "facts" | "running"> & { facts: string };
    const rows = await this.#sql.all<Row>(
      `SELECT id, role, address, version, facts, ${DATABASE_NOW} - seen_at AS "silentMs" FROM servers ORDER BY role, address, id`,
    );
    const jobs = await this.#sql.all<RunningJobFacts & { worker: string | null }>(
      `SELECT id, model_id AS "modelId", owner, kind, progress, worker FROM jobs WHERE status = 'RUNNING' ORDER BY seq`,
    );
    return rows.map((row) => ({
      ...row,
      facts: JSON.parse(row.facts) as ServerFacts,
      running: jobs.filter(({ worker }) => worker === row.id).map(({ worker: _, ...job }) => job),
    }));
  }
}
