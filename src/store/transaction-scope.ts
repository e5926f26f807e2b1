// What every transaction gets: calls that end with it, and an end.

import type { Sql, SqlValue } from "./store.ts";

/** The calls of one transaction. They fail once `end` was called. */
export class TransactionScope implements Sql {
  readonly #sql: Sql;
  #open = true;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  end(): void {
    this.#open = false;
  }

  async run(sql: string, ...params: SqlValue[]): Promise<number> {
    return this.#inside().run(sql, ...params);
  }

  async get<Row>(sql: string, ...params: SqlValue[]): Promise<Row | undefined> {
    return this.#inside().get<Row>(sql, ...params);
  }

  async all<Row>(sql: string, ...params: SqlValue[]): Promise<Row[]> {
    return this.#inside().all<Row>(sql, ...params);
  }

  #inside(): Sql {
    if (!this.#open) throw new Error("the transaction is over: await every call inside it");
    return this.#sql;
  }
}

/** A transaction is a few statements. One that lasts this long waits for itself and would block everything else. */
export const TRANSACTION_LIMIT_MS = 10_000;

export async function withinLimit<R>(work: Promise<R>, limitMs: number): Promise<R> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    const message = `a transaction did not end within ${limitMs / 1000} seconds: does it call the store instead of its tx?`;
    timer = setTimeout(() => reject(new Error(message)), limitMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
