import { expect, test } from "vitest";
import { ThinkingBudget } from "./thinking-budget.ts";

const START = [7];
const END = [8, 9];

function run(limit: { maxTokens: number; open: boolean }, wanted: readonly number[]): number[] {
  const budget = new ThinkingBudget({ startIds: START, endIds: END, ...limit });
  return wanted.map((id) => {
    const next = budget.forcedId ?? id;
    budget.note(next);
    return next;
  });
}

test("a thought ends after its budget, with the whole marker", () => {
  expect(run({ maxTokens: 2, open: false }, [7, 1, 2, 3, 4, 5])).toEqual([7, 1, 2, 8, 9, 5]);
  expect(run({ maxTokens: 2, open: true }, [1, 2, 3, 4, 5])).toEqual([1, 2, 8, 9, 5]);
  expect(run({ maxTokens: 0, open: true }, [1, 2, 3])).toEqual([8, 9, 3]);
});

test("a marker that the model has begun is completed", () => {
  expect(run({ maxTokens: 2, open: true }, [1, 8, 3, 4])).toEqual([1, 8, 9, 4]);
});

test("a thought that ends in time, or never begins, is left alone", () => {
  expect(run({ maxTokens: 3, open: true }, [1, 8, 9, 4, 5, 6, 7, 1, 2, 3, 4])).toEqual([
    1, 8, 9, 4, 5, 6, 7, 1, 2, 3, 4,
  ]);
  expect(run({ maxTokens: 0, open: false }, [1, 2, 3])).toEqual([1, 2, 3]);
});
