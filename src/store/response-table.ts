// Replies of the Responses API that clients may read again and continue. A row belongs to a workspace. It goes when nobody
// has used it for long, and when its workspace has more of them than it may.

import type { Store } from "./store.ts";

export interface StoredResponse {
  id: string;
  /** The response that this one continues. It may be gone. */
  previousId: string | null;
  /** JSON of the response as clients see it. */
  response: string;
  /** JSON of the items of its own input, without those of previous responses. */
  input: string;
}

export interface ResponseBound {
  /** Of all responses of one workspace. */
  bytes: number;
  days: number;
}

const DAY_MS = 24 * 3600_000;
/** How often the bound is checked. */
const PRUNE_MS = 60_000;
/** Longer than any conversation that fits a context. */
const LONGEST_CHAIN = 100_000;

const COLUMNS = `id, previous_id AS "previousId", response, input`;

/** The response ?1 of the owner ?2 and all that it continues; depth 0 is the response itself. */
const CHAIN = `
  WITH RECURSIVE chain (id, previous_id, depth) AS (
    SELECT id, previous_id, 0 FROM responses WHERE id = ?1 AND owner = ?2
    UNION ALL
    SELECT earlier.id, earlier.previous_id, chain.depth + 1
    FROM responses AS earlier JOIN chain ON earlier.id = chain.previous_id AND earlier.owner = ?2
    WHERE chain.depth < ${LONGEST_CHAIN}
  )`;

export class ResponseTable {
  readonly #store: Store;
  readonly #bound: ResponseBound;
  readonly #now: () => number;
  #prunedAt = Number.NEGATIVE_INFINITY;

  /** `now`: milliseconds since 1970. */
  constructor(store: Store, bound: ResponseBound, now: () => number = Date.now) {
    this.#store = store;
    this.#bound = bound;
    this.#now = now;
  }

  /** Whether anything is kept at all. */
  get keeps(): boolean {
    return this.#bound.bytes > 0 && this.#bound.days > 0;
  }

  async save(owner: string, { id, previousId, response, input }: StoredResponse): Promise<void> {
    const bytes = Buffer.byteLength(response) + Buffer.byteLength(input);
    await this.#store.run(
      "INSERT INTO responses (id, owner, previous_id, used_at, bytes, response, input) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
      ...[id, owner, previousId, this.#now(), bytes, response, input],
    );
    await this.#prune();
  }

  async get(owner: string, id: string): Promise<StoredResponse | null> {
    const sql = `SELECT ${COLUMNS} FROM responses WHERE id = ?1 AND owner = ?2`;
    return (await this.#store.get<StoredResponse>(sql, id, owner)) ?? null;
  }

  /**
   * The response and all that it continues, oldest first; empty if there is none. If the oldest one continues another,
   * that one is gone. Whatever is read here counts as used.
   */
  async conversation(owner: string, id: string): Promise<StoredResponse[]> {
    const rows = await this.#store.all<StoredResponse>(
      `SELECT ${COLUMNS} FROM (${CHAIN}
         SELECT responses.id, responses.previous_id, response, input, depth
         FROM chain JOIN responses ON responses.id = chain.id) AS found ORDER BY depth DESC`,
      ...[id, owner],
    );
    if (rows.length > 0) {
      const sql = `${CHAIN} UPDATE responses SET used_at = ?3 WHERE id IN (SELECT id FROM chain)`;
      await this.#store.transaction((tx) => tx.run(sql, id, owner, this.#now()), { relaxed: true });
    }
    return rows;
  }

  async delete(owner: string, id: string): Promise<boolean> {
    return (await this.#store.run("DELETE FROM responses WHERE id = ?1 AND owner = ?2", id, owner)) > 0;
  }

  async #prune(): Promise<void> {
    const now = this.#now();
    if (now < this.#prunedAt + PRUNE_MS) return;
    this.#prunedAt = now;
    const { bytes, days } = this.#bound;
    await this.#store.run("DELETE FROM responses WHERE used_at < ?1", Math.floor(now - days * DAY_MS));
    const full = await this.#store.all<{ owner: string }>(
      "SELECT owner FROM responses GROUP BY owner HAVING SUM(bytes) > ?1",
      bytes,
    );
    for (const { owner } of full) {
      await this.#store.run(
        `DELETE FROM responses WHERE id IN (SELECT id FROM (
           SELECT id, SUM(bytes) OVER (ORDER BY used_at DESC, id) AS kept FROM responses WHERE owner = ?1
         ) AS sums WHERE kept > ?2)`,
        ...[owner, bytes],
      );
    }
  }
}
