// A store whose every answer comes a few turns of the event loop later, as from a server. Whatever relied on an answer
// at once now meets what others did meanwhile.

import type { Sql, Store } from "../../src/store/store.ts";

/** `turns`: how many turns to wait before and after each call. */
export function lateStore(store: Store, turns: () => number): Store {
  const pause = async () => {
    for (let left = turns(); left > 0; left--) await new Promise((resolve) => setImmediate(resolve));
  };
  const late = async <T>(call: () => Promise<T>): Promise<T> => {
    await pause();
    try {
      return await call();
    } finally {
      await pause();
    }
  };
  const lateSql = (sql: Sql): Sql => ({
    run: (text, ...params) => late(() => sql.run(text, ...params)),
    get: <Row>(text: string, ...params: Parameters<Sql["get"]>[1][]) => late(() => sql.get<Row>(text, ...params)),
    all: <Row>(text: string, ...params: Parameters<Sql["all"]>[1][]) => late(() => sql.all<Row>(text, ...params)),
  });
  return {
    ...lateSql(store),
    transaction: (work, options) => late(() => store.transaction((tx) => work(lateSql(tx)), options)),
    notify: (channel, payload) => late(() => store.notify(channel, payload)),
    listen: (channel, heard) => store.listen(channel, heard),
    close: () => store.close(),
  };
}
