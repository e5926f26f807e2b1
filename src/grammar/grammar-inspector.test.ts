import { afterAll, expect, test } from "vitest";
import { byteVocabulary, keyOf } from "../../test/grammar/walk.ts";
import { GrammarInspector } from "./grammar-inspector.ts";

const inspector = new GrammarInspector(() => byteVocabulary);
afterAll(() => inspector.close());

const stopTokenIds = [byteVocabulary.size - 1];
const never = new AbortController().signal;
const grammar = keyOf({ kind: "regex", pattern: "a{1,1000}" });
const question = (tokens: number) => ({ grammar, stopTokenIds, tokens: Array.from({ length: tokens }, () => 0x61) });

test("says what was legal, and whether the output may end", async () => {
  const seen = await inspector.inspect(question(2), "a", never);
  expect(seen).toMatchObject({ mayEnd: true, positions: [{ legal: 1, forced: true, mayEnd: false }, { legal: 2 }] });
});

test("lets another client go next, however many questions of the first one wait", async () => {
  const order: string[] = [];
  const ask = (name: string, client: string) =>
    inspector.inspect(question(500), client, never).then(() => order.push(name));
  await Promise.all([...Array.from({ length: 10 }, (_, i) => ask(`a${i}`, "a")), ask("b", "b")]);
  expect(order.slice(0, 2)).toEqual(["a0", "b"]);
});

test("refuses what one client has waiting beyond a hundred, and skips those who left", async () => {
  const gone = new AbortController();
  const asked = Array.from({ length: 110 }, () => inspector.inspect(question(1), "a", gone.signal));
  gone.abort();
  const settled = await Promise.allSettled(asked);
  const refused = settled.filter((each) => each.status === "rejected");
  expect(refused.map(({ reason }) => (reason as Error).name)).toEqual(Array(9).fill("QueueFullError"));
  expect(settled.filter((each) => each.status === "fulfilled" && each.value === null)).toHaveLength(100);
});
