// Replies of the Responses API that clients may read again and continue. A response belongs to a workspace. It goes when nobody
// has used it for long, and when its workspace needs room for another. What a workspace has is counted in bytes, in the
// transaction that changes it. Items are rows of their own, so that nobody reads more of them than was asked for.
import { givingWay } from "../../pacing/turns.ts";
import type { Statements, Store } from "../store.ts";

// The names of parameters in statements that take several values. Statements are prepared once for each text, so few counts are used.

/** `?1, ?2, …`, beginning after the first `skip` parameters. */
export function placeholders(count: number, skip = 0): string {
  return Array.from({ length: count }, (_, i) => `?${skip + i + 1}`).join(", ");
}

export interface NewResponse {
  id: string;
  /** The response that this one continues. It may be gone. */
  previousId: string | null;
  /** JSON of the response as clients see it. */
  response: string;
  /** Its own input, without that of previous responses. */
  input: readonly StoredItem[];
  output: readonly StoredItem[];
}

export interface StoredItem {
  id: string;
  /** JSON. null: a reference to the item with this id. */
  item: string | null;
}

export interface ResponseBound {
  /** Of all responses of one workspace. */
  bytes: number;
  days: number;
}

const DAY_MS = 24 * 3600_000;
/** How often old ones are looked for. */
const PRUNE_MS = 60_000;
/** What rows take beside their texts, with their indexes. */
const RESPONSE_BYTES = 400;
const ITEM_BYTES = 150;
/** Rows of one statement. */
const BATCH = 50;

/** It begins with a change of the row that counts, so that what a workspace has changes in one place at a time. */
const COUNTED = { rowLocks: true };

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

  /** Bytes that a workspace may keep. */
  get mostBytes(): number {
    return this.#bound.bytes;
  }

  /** Bytes that a workspace has. */
  async used(owner: string): Promise<number> {
    const row = await this.#store.get<{ bytes: number }>("SELECT bytes FROM stored_bytes WHERE owner = ?1", owner);
    return row?.bytes ?? 0;
  }

  /** false: it is larger than all that the workspace may keep. Otherwise the least recently used ones make room. */
  async save(owner: string, row: NewResponse): Promise<boolean> {
    const bytes = bytesOf(row);
    if (bytes > this.#bound.bytes) return false;
    await this.#store.transaction(async (tx) => {
      const used = await count(tx, owner, bytes);
      await this.#makeRoom(tx, owner, used - this.#bound.bytes);
      await this.#insert(tx, owner, row, bytes);
    }, COUNTED);
    await this.#prune();
    return true;
  }

  /** Bytes of the JSON of a response, and how many items its input has. */
  async sizeOf(owner: string, id: string): Promise<{ bytes: number; inputs: number } | null> {
    const sql = `SELECT response_bytes AS bytes, inputs FROM stored_responses WHERE id = ?1 AND owner = ?2`;
    return (await this.#store.get<{ bytes: number; inputs: number }>(sql, id, owner)) ?? null;
  }

  /** The JSON of a response. */
  async get(owner: string, id: string): Promise<string | null> {
    const sql = "SELECT response FROM stored_responses WHERE id = ?1 AND owner = ?2";
    return (await this.#store.get<{ response: string }>(sql, id, owner))?.response ?? null;
  }

  delete(owner: string, id: string): Promise<boolean> {
    return this.#store.transaction(async (tx) => {
      await count(tx, owner, 0);
      const sql = "SELECT id, bytes FROM stored_responses WHERE id = ?1 AND owner = ?2";
      const rows = await tx.all<Sized>(sql, id, owner);
      await remove(tx, owner, rows);
      return rows.length > 0;
    }, COUNTED);
  }

  async #makeRoom(tx: Statements, owner: string, missing: number): Promise<void> {
    const giveWay = givingWay();
    for (let left = missing; left > 0; ) {
      const rows = await tx.all<Sized>(
        `SELECT id, bytes FROM stored_responses WHERE owner = ?1 ORDER BY used_at, id LIMIT ${BATCH}`,
        owner,
      );
      if (rows.length === 0) return;
      const going: Sized[] = [];
      for (const row of rows) {
        if (left <= 0) break;
        going.push(row);
        left -= row.bytes;
      }
      await remove(tx, owner, going, giveWay);
    }
  }

  async #insert(tx: Statements, owner: string, row: NewResponse, bytes: number): Promise<void> {
    const { id, previousId, response, input, output } = row;
    const items = [...input, ...output];
    const sizes = items.map(({ item }) => (item === null ? 0 : Buffer.byteLength(item)));
    await tx.run(
      `INSERT INTO stored_responses
         (id, owner, previous_id, used_at, bytes, inputs, items, item_bytes, response_bytes, response)
       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)`,
      ...[id, owner, previousId, this.#now(), bytes, input.length, items.length],
      ...[sizes.reduce((sum, size) => sum + size, 0), Buffer.byteLength(response), response],
    );
    const giveWay = givingWay();
    for (let from = 0; from < items.length; from += BATCH) {
      const batch = items.slice(from, from + BATCH);
      const values = batch.map((_, i) => `(${placeholders(5, 5 * i)})`).join(", ");
      await tx.run(
        `INSERT INTO stored_items (response_id, position, item_id, bytes, item) VALUES ${values}`,
        ...batch.flatMap((one, i) => [id, from + i, one.id, sizes[from + i]!, one.item]),
      );
      await giveWay();
    }
  }

  async #prune(): Promise<void> {
    const now = this.#now();
    if (now < this.#prunedAt + PRUNE_MS) return;
    this.#prunedAt = now;
    const before = Math.floor(now - this.#bound.days * DAY_MS);
    const giveWay = givingWay();
    for (;;) {
      const oldest = await this.#store.get<{ owner: string }>(
        "SELECT owner FROM stored_responses WHERE used_at < ?1 ORDER BY used_at LIMIT 1",
        before,
      );
      if (oldest === undefined) return;
      await this.#store.transaction(async (tx) => {
        await count(tx, oldest.owner, 0);
        const rows = await tx.all<Sized>(
          `SELECT id, bytes FROM stored_responses WHERE owner = ?1 AND used_at < ?2 ORDER BY used_at, id LIMIT ${BATCH}`,
          ...[oldest.owner, before],
        );
        await remove(tx, oldest.owner, rows, giveWay);
      }, COUNTED);
    }
  }
}

interface Sized {
  id: string;
  bytes: number;
}

/** What a response takes of its workspace's bytes. */
export function bytesOf({ response, input, output }: NewResponse): number {
  const ofItems = (items: readonly StoredItem[]) =>
    items.reduce((sum, { id, item }) => sum + ITEM_BYTES + Buffer.byteLength(id) + Buffer.byteLength(item ?? ""), 0);
  return RESPONSE_BYTES + Buffer.byteLength(response) + ofItems(input) + ofItems(output);
}

/** Adds to what a workspace has, and returns it. */
async function count(tx: Statements, owner: string, bytes: number): Promise<number> {
  const [row] = await tx.all<{ bytes: number }>(
    `INSERT INTO stored_bytes (owner, bytes) VALUES (?1, ?2)
     ON CONFLICT (owner) DO UPDATE SET bytes = stored_bytes.bytes + ?2 RETURNING bytes`,
    ...[owner, bytes],
  );
  return row!.bytes;
}

/** One by one, because each takes its items along. */
async function remove(tx: Statements, owner: string, rows: readonly Sized[], giveWay = givingWay()): Promise<void> {
  for (const { id, bytes } of rows) {
    await tx.run("DELETE FROM stored_responses WHERE id = ?1", id);
    await count(tx, owner, -bytes);
    await giveWay();
  }
}
