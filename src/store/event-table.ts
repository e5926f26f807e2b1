// The events of training jobs, in order of insertion. Events are never changed, and are deleted with their job.

import { randomUUID } from "node:crypto";
import type { Store } from "./db.ts";

export interface JobEvent {
  id: string;
  type: string;
  data: Record<string, unknown>;
  createdAt: string;
}

export class EventTable {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  add(jobId: string, type: string, data: Record<string, unknown>): JobEvent {
    const event = { id: randomUUID(), type, data, createdAt: new Date().toISOString() };
    this.#store.run(
      "INSERT INTO job_events (id, job_id, type, data, created_at) VALUES (?, ?, ?, ?, ?)",
      ...[event.id, jobId, type, JSON.stringify(data), event.createdAt],
    );
    return event;
  }

  /** Oldest first. `after`: id of the last event seen. Returns null when the job has no such event. */
  list(jobId: string, after: string | null, limit: number): JobEvent[] | null {
    const seen = after === null ? 0 : this.#seqOf(jobId, after);
    if (seen === null) return null;
    const sql = `SELECT id, type, data, created_at AS createdAt FROM job_events WHERE job_id = ? AND seq > ?
      ORDER BY seq LIMIT ?`;
    const rows = this.#store.all<Omit<JobEvent, "data"> & { data: string }>(sql, jobId, seen, limit);
    return rows.map((row) => ({ ...row, data: JSON.parse(row.data) }));
  }

  count(jobId: string, type: string): number {
    const sql = "SELECT COUNT(*) AS count FROM job_events WHERE job_id = ? AND type = ?";
    return this.#store.get<{ count: number }>(sql, jobId, type)!.count;
  }

  #seqOf(jobId: string, id: string): number | null {
    const sql = "SELECT seq FROM job_events WHERE id = ? AND job_id = ?";
    return this.#store.get<{ seq: number }>(sql, id, jobId)?.seq ?? null;
  }
}
