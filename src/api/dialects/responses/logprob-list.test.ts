import { expect, it } from "vitest";
import { LogprobList, writeWithLists } from "./logprob-list.ts";

const entry = (token: string) => ({ token, logprob: -1, bytes: [1], top_logprobs: [] });

it("writes the entries as JSON in the place of their list, however they came", () => {
  const lists = [new LogprobList(0), new LogprobList(1)];
  lists[1]!.add([]);
  lists[1]!.add([entry('"{}')]);
  lists[1]!.add([entry("b"), entry("c")]);
  const value = { first: lists[0], texts: [{ logprobs: lists[1] }, lists[1]] };
  const all = [entry('"{}'), entry("b"), entry("c")];
  expect(JSON.parse(writeWithLists(value, lists))).toEqual({ first: [], texts: [{ logprobs: all }, all] });
  expect(lists[1]).toHaveLength(3);
});

it("takes no object of a client for a list", () => {
  const list = new LogprobList(0);
  list.add([entry("secret")]);
  const stranger = { ...new LogprobList(7).toJSON(), logprobs: 0 };
  const metadata = { a: { "\u0000logprobs": 0 }, b: { logprobs: 0 }, c: stranger };
  expect(JSON.parse(writeWithLists({ metadata }, [list]))).toEqual({ metadata });
});
