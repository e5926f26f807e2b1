// A store whose calls can fail, as those of a database on another machine do: before they take effect, or with an answer that is
// lost afterwards.

import type { SqlValue, Statements, Store } from "../../src/store/store.ts";
import type { Call, FaultPoints } from "./fault-points.ts";

const CHANGE = /^\s*(INSERT|UPDATE|DELETE)\b/i;

/** `asked`: hears every statement first. */
export function faultyStore(store: Store, faults: FaultPoints, asked: (sql: string) => void = () => {}): Store {
  const call = async <T>(given: Omit<Call, "device">, work: () => Promise<T>): Promise<T> => {
    const fault = faults.meet({ device: "database", ...given });
    if (fault && !fault.afterwards) throw fault.error;
    const answer = await work();
    if (fault) throw fault.error;
    return answer;
  };
  const faulty = (sql: Statements, inTransaction: boolean): Statements => {
    const statement = <T>(text: string, work: () => Promise<T>) => {
      asked(text);
      const name = text.trim().replace(/\s+/g, " ").slice(0, 50);
      return call({ name, kind: CHANGE.test(text) ? "change" : "read", inTransaction }, work);
    };
    return {
      run: (text, ...params) => statement(text, () => sql.run(text, ...params)),
      get: <Row>(text: string, ...params: SqlValue[]) => statement(text, () => sql.get<Row>(text, ...params)),
      all: <Row>(text: string, ...params: SqlValue[]) => statement(text, () => sql.all<Row>(text, ...params)),
    };
  };
  return {
    ...faulty(store, false),
    async transaction(work, options) {
      await call({ name: "BEGIN", kind: "read" }, async () => {});
      let lost: Error | null = null;
      const result = await store.transaction(async (tx) => {
        const done = await work(faulty(tx, true));
        const fault = faults.meet({ device: "database", name: "COMMIT", kind: "commit" });
        if (fault && !fault.afterwards) throw fault.error;
        lost = fault?.error ?? null;
        return done;
      }, options);
      if (lost !== null) throw lost;
      return result;
    },
    notify: (channel, payload) => store.notify(channel, payload),
    listen: (channel, heard) => store.listen(channel, heard),
    close: () => store.close(),
  };
}
