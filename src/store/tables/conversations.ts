// Reads what stored responses continue and refer to. One small request may ask for much, so what is about to be read is counted
// first: the walk back along a conversation stops where the room ends, and no text is read before its size is.
import { givingWay } from "../../pacing/turns.ts";
import type { Store } from "../store.ts";
import { placeholders, type StoredItem } from "./responses.ts";

export interface Amount {
  responses: number;
  items: number;
  /** Of the JSON of the items. */
  bytes: number;
}

/** What one request may read. */
export interface ReadingRoom {
  readonly left: Readonly<Amount>;
  /** Throws if it is more than what is left. */
  take(amount: Partial<Amount>): void;
}

/** An item, and the response that has it. */
export interface ItemPlace {
  id: string;
  responseId: string;
}

/** A response of a conversation. */
export interface Link {
  id: string;
  previousId: string | null;
  items: number;
  /** Milliseconds since 1970. */
  usedAt: number;
}

export interface ItemPage {
  items: StoredItem[];
  hasMore: boolean;
}

export interface PageOptions {
  limit: number;
  descending: boolean;
  /** Id of the item before the page. */
  after: string | null;
}

/** Ids in one statement. */
const BATCH = 32;
/** A page ends before it has more, unless its first item alone has. */
const PAGE_BYTES = 2 ** 20;
/** What is read counts as used; it is written down when it was used last so long ago. */
const USED_MS = 60_000;

/** The response ?1 of the owner ?2 and what it continues, until more than ?3 responses, ?4 items or ?5 bytes were seen. */
const CHAIN = `
  WITH RECURSIVE chain (id, previous_id, used_at, depth, own_items, items, bytes) AS (
    SELECT id, previous_id, used_at, 1, items, items, item_bytes FROM stored_responses WHERE id = ?1 AND owner = ?2
    UNION ALL
    SELECT earlier.id, earlier.previous_id, earlier.used_at, chain.depth + 1, earlier.items,
      chain.items + earlier.items, chain.bytes + earlier.item_bytes
    FROM stored_responses AS earlier JOIN chain ON earlier.id = chain.previous_id AND earlier.owner = ?2
    WHERE chain.depth <= ?3 AND chain.items <= ?4 AND chain.bytes <= ?5
  )
  SELECT id, previous_id AS "previousId", used_at AS "usedAt", own_items AS "ownItems", depth, items, bytes
  FROM chain ORDER BY depth DESC`;

export class ConversationTable {
  readonly #store: Store;
  readonly #now: () => number;

  constructor(store: Store, now: () => number = Date.now) {
    this.#store = store;
    this.#now = now;
  }

  /**
   * The response and all that it continues, oldest first; empty if there is none. If the oldest one continues another, that
   * one is gone. Their items are taken from the room, and not read yet.
   */
  async chain(owner: string, id: string, room: ReadingRoom): Promise<Link[]> {
    const { responses, items, bytes } = room.left;
    const rows = await this.#store.all<Link & { ownItems: number; depth: number; bytes: number }>(
      CHAIN,
      ...[id, owner, responses, items, bytes],
    );
    const all = rows[0];
    if (all === undefined) return [];
    room.take({ responses: all.depth, items: all.items, bytes: all.bytes });
    return rows.map(({ id, previousId, usedAt, ownItems }) => ({ id, previousId, usedAt, items: ownItems }));
  }

  /** The items of a chain, in order; null if some of them are gone by now. */
  async items(owner: string, chain: readonly Link[]): Promise<StoredItem[] | null> {
    const found: StoredItem[] = [];
    const giveWay = givingWay();
    for (let from = 0; from < chain.length; from += BATCH) {
      const ids = padded(chain.slice(from, from + BATCH).map(({ id }) => id));
      const rows = await this.#store.all<StoredItem & { responseId: string }>(
        `SELECT response_id AS "responseId", item_id AS id, item FROM stored_items
         WHERE response_id IN (${placeholders(BATCH)}) ORDER BY response_id, position`,
        ...ids,
      );
      const byResponse = new Map<string, StoredItem[]>(ids.map((id) => [id, []]));
      for (const { responseId, id, item } of rows) byResponse.get(responseId)!.push({ id, item });
      for (const { id, items } of chain.slice(from, from + BATCH)) {
        const own = byResponse.get(id)!;
        if (own.length < items) return null;
        found.push(...own);
      }
      await giveWay();
    }
    await this.#use(owner, chain);
    return found;
  }

  /**
   * The JSON of items, by id; those that are gone are left out. `ids`: each as often as it is used. An item
   * that is a reference itself is none that could be named.
   */
  async referenced(
    owner: string,
    ids: readonly ItemPlace[],
    room: Pick<ReadingRoom, "take">,
  ): Promise<Map<string, string>> {
    const uses = new Map<string, number>();
    for (const { id } of ids) uses.set(id, (uses.get(id) ?? 0) + 1);
    const items = [...new Map(ids.map((one) => [one.id, one])).values()];
    const texts = new Map<string, string>();
    const used = new Map<string, { id: string; usedAt: number }>();
    const giveWay = givingWay();
    for (let from = 0; from < items.length; from += BATCH) {
      const found = await this.#found(owner, items.slice(from, from + BATCH));
      for (const { id, bytes } of found.values()) room.take({ bytes: bytes * uses.get(id)! });
      for (const { responseId, usedAt } of found.values()) used.set(responseId, { id: responseId, usedAt });
      const rows = await this.#store.all<{ id: string; responseId: string; item: string }>(
        `SELECT item_id AS id, response_id AS "responseId", item FROM stored_items
         WHERE response_id IN (${placeholders(BATCH)}) AND item_id IN (${placeholders(BATCH, BATCH)}) AND item IS NOT NULL`,
        ...[...padded([...found.values()].map(({ responseId }) => responseId)), ...padded([...found.keys()])],
      );
      for (const { id, responseId, item } of rows) {
        if (found.get(id)!.responseId === responseId) texts.set(id, item);
      }
      await giveWay();
    }
    await this.#use(owner, [...used.values()]);
    return texts;
  }

  /**
   * A page of the input of a response. null: it has no item with the id `after`. `reserve` hears of the bytes before they are
   * read. `of`: the response that the id of an item belongs to. References are followed; one whose item is gone stays a reference.
   */
  async page(
    owner: string,
    { id, inputs }: { id: string; inputs: number },
    { limit, descending, after }: PageOptions,
    reserve: (bytes: number) => void,
    of: (itemId: string) => string | null,
  ): Promise<ItemPage | null> {
    const from = await this.#place(id, inputs, descending, after);
    if (from === null) return null;
    const [low, high] = descending ? [0, from - 1] : [from + 1, inputs - 1];
    const order = descending ? "DESC" : "ASC";
    const sizes = await this.#store.all<{ position: number; id: string; bytes: number; refers: number }>(
      `SELECT position, item_id AS id, bytes, CASE WHEN item IS NULL THEN 1 ELSE 0 END AS refers FROM stored_items
       WHERE response_id = ?1 AND position BETWEEN ?2 AND ?3 ORDER BY position ${order} LIMIT ?4`,
      ...[id, low, high, limit + 1],
    );
    const references = sizes.flatMap(({ id, refers }) => {
      const responseId = refers === 1 ? of(id) : null;
      return responseId === null ? [] : [{ id, responseId }];
    });
    const referred = new Map<string, number>();
    for (let at = 0; at < references.length; at += BATCH) {
      const found = await this.#found(owner, references.slice(at, at + BATCH));
      for (const { id, bytes } of found.values()) referred.set(id, bytes);
    }
    const shown: typeof sizes = [];
    let bytes = 0;
    for (const row of sizes.slice(0, limit)) {
      bytes += row.bytes + (referred.get(row.id) ?? 0);
      if (shown.length > 0 && bytes > PAGE_BYTES) break;
      shown.push(row);
    }
    if (shown.length === 0) return { items: [], hasMore: false };
    reserve(shown.reduce((sum, row) => sum + row.bytes, 0));
    const ends = [shown[0]!.position, shown.at(-1)!.position];
    const rows = await this.#store.all<StoredItem>(
      `SELECT item_id AS id, item FROM stored_items
       WHERE response_id = ?1 AND position BETWEEN ?2 AND ?3 ORDER BY position ${order}`,
      ...[id, Math.min(...ends), Math.max(...ends)],
    );
    const isShown = new Set(shown.map((row) => row.id));
    const texts = await this.referenced(
      owner,
      references.filter((one) => isShown.has(one.id)),
      { take: ({ bytes = 0 }) => reserve(bytes) },
    );
    const items = rows.map(({ id, item }) => ({ id, item: item ?? texts.get(id) ?? null }));
    return { items, hasMore: shown.length < sizes.length };
  }

  /** The position before a page; null if there is no such item. Of equal ids the last one counts, so that pages end. */
  async #place(id: string, inputs: number, descending: boolean, after: string | null): Promise<number | null> {
    if (after === null) return descending ? inputs : -1;
    const row = await this.#store.get<{ position: number | null }>(
      `SELECT ${descending ? "MIN" : "MAX"}(position) AS position FROM stored_items
       WHERE response_id = ?1 AND item_id = ?2 AND position < ?3`,
      ...[id, after, inputs],
    );
    return row?.position ?? null;
  }

  /** Which of at most BATCH items are there, by id. */
  async #found(owner: string, items: readonly ItemPlace[]): Promise<Map<string, FoundItem>> {
    const rows = await this.#store.all<FoundItem>(
      `SELECT item_id AS id, response_id AS "responseId", used_at AS "usedAt", stored_items.bytes AS bytes
       FROM stored_items JOIN stored_responses ON stored_responses.id = response_id
       WHERE response_id IN (${placeholders(BATCH)}) AND item_id IN (${placeholders(BATCH, BATCH)})
         AND item IS NOT NULL AND owner = ?${2 * BATCH + 1}`,
      ...[...padded(items.map(({ responseId }) => responseId)), ...padded(items.map(({ id }) => id)), owner],
    );
    const home = new Map(items.map(({ id, responseId }) => [id, responseId]));
    return new Map(rows.filter((row) => home.get(row.id) === row.responseId).map((row) => [row.id, row]));
  }

  async #use(owner: string, read: readonly { id: string; usedAt: number }[]): Promise<void> {
    const now = this.#now();
    const ids = read.filter(({ usedAt }) => usedAt < now - USED_MS).map(({ id }) => id);
    if (ids.length === 0) return;
    const giveWay = givingWay();
    for (let from = 0; from < ids.length; from += BATCH) {
      const sql = `UPDATE stored_responses SET used_at = ?${BATCH + 1}
        WHERE id IN (${placeholders(BATCH)}) AND owner = ?${BATCH + 2}`;
      await this.#store.transaction((tx) => tx.run(sql, ...padded(ids.slice(from, from + BATCH)), now, owner), {
        relaxed: true,
      });
      await giveWay();
    }
  }
}

interface FoundItem extends ItemPlace {
  bytes: number;
  usedAt: number;
}

function padded(ids: readonly string[]): string[] {
  return Array.from({ length: BATCH }, (_, i) => ids[i] ?? "");
}
