import { expect, it } from "vitest";
import { spread } from "./spread.ts";

it("keeps the first and the last", () => {
  expect(spread([1, 2, 3], 5)).toEqual([1, 2, 3]);
  expect(spread([0, 1, 2, 3, 4, 5, 6, 7, 8], 3)).toEqual([0, 4, 8]);
  expect(spread([], 3)).toEqual([]);
});
