// A store that waits around every call, as one on a server does. Whatever relied on an answer at once now meets what
// others did meanwhile.

import type { SqlValue, Statements, Store } from "../../src/store/store.ts";

/** `pause` is awaited before each call, and after it with its answer. */
export function lateStore(store: Store, pause: (answer?: unknown) => Promise<void>): Store {
  const late = async <T>(call: () => Promise<T>): Promise<T> => {
    await pause();
    const answer = await call();
    await pause(answer);
    return answer;
  };
  const lateSql = (sql: Statements): Statements => ({
    run: (text, ...params) => late(() => sql.run(text, ...params)),
    get: <Row>(text: string, ...params: SqlValue[]) => late(() => sql.get<Row>(text, ...params)),
    all: <Row>(text: string, ...params: SqlValue[]) => late(() => sql.all<Row>(text, ...params)),
  });
  return {
    ...lateSql(store),
    transaction: (work, options) => late(() => store.transaction((tx) => work(lateSql(tx)), options)),
    notify: (channel, payload) => late(() => store.notify(channel, payload)),
    listen: (channel, heard) => store.listen(channel, heard),
    close: () => store.close(),
  };
}
