import { expect, it } from "vitest";
import { differenceOf, type Pair, promptsIn, summaryOf } from "./coupled.ts";
import type { Token } from "./tokens.ts";

const side = (text: string, ...ids: number[]) => ({ text, tokens: ids.map((id) => ({ id }) as Token) });
const pair = (a: Pair["a"], b: Pair["b"]): Pair => ({ prompt: "p", a, b, error: null });

const PAIRS = [
  pair(side("blue", 1), side("blue", 1)),
  pair(side("red", 1, 2), side("blue", 1, 3)),
  pair(side("blue", 4), side("red", 5)),
  pair(side("blue", 4), null),
];

it("reads prompts line by line", () => {
  expect(promptsIn(" a\n\nb \n")).toEqual(["a", "b"]);
});

it("counts what differs and pairs what is right", () => {
  expect(PAIRS.map(differenceOf)).toEqual([null, 1, 0, null]);
  expect(summaryOf(PAIRS, "")).toEqual({ done: 3, differing: 2, right: null });
  expect(summaryOf(PAIRS, "BLUE|green").right).toEqual({ a: 2, b: 2, onlyA: 1, onlyB: 1 });
  expect(summaryOf(PAIRS, "(").right).toEqual({ a: 0, b: 0, onlyA: 0, onlyB: 0 });
});
