// A store that a server cannot reach for a while, as if its process were stopped or its network cut. What it asks meanwhile
// is answered later.

import type { Statements, Store } from "../../src/store/store.ts";

export interface PausedStore extends Store {
  pause(): void;
  resume(): void;
}

export function pausableStore(store: Store): PausedStore {
  let open = Promise.resolve();
  let resume = () => {};
  const later = async <T>(call: () => Promise<T>): Promise<T> => {
    await open;
    return call();
  };
  const sql: Statements = {
    run: (text, ...params) => later(() => store.run(text, ...params)),
    get: <Row>(text: string, ...params: Parameters<Statements["get"]>[1][]) =>
      later(() => store.get<Row>(text, ...params)),
    all: <Row>(text: string, ...params: Parameters<Statements["all"]>[1][]) =>
      later(() => store.all<Row>(text, ...params)),
  };
  return {
    ...sql,
    transaction: (work, options) => later(() => store.transaction(work, options)),
    notify: (channel, payload) => later(() => store.notify(channel, payload)),
    listen: (channel, heard) => store.listen(channel, (payload) => void later(async () => heard(payload))),
    close: () => store.close(),
    pause() {
      open = new Promise((resolve) => {
        resume = resolve;
      });
    },
    resume: () => resume(),
  };
}
