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
    return this.#store
      .all<EventRow>("SELECT * FROM job_events WHERE job_id = ? AND seq > ? ORDER BY seq LIMIT ?", jobId, seen, limit)
      .map(({ id, type, data, created_at }) => ({ id, type, data: JSON.parse(data), createdAt: created_at }));
  }

  count(jobId: string, type: string): number {
    const sql = "SELECT COUNT(*) AS count FROM job_events WHERE job_id = ? AND type = ?";
    return this.#store.get<{ count: number }>(sql, jobId, type)!.count;
  }

  #seqOf(jobId: string, id: string): number | null {
    return (
      this.#store.get<{ seq: number }>("SELECT seq FROM job_events WHERE id = ? AND job_id = ?", id, jobId)?.seq ?? null
    );
  }
}

interface EventRow {
  id: string;
  type: string;
  data: string;
  created_at: string;
}
