import { expect, it } from "vitest";
import { Outline } from "./outline.ts";

it("lets no level of headings out, and none be higher than the page allows", () => {
  const levels = (depths: number[]) => {
    const outline = new Outline();
    return depths.map((depth) => outline.level(depth));
  };
  expect(levels([1, 2, 3, 2, 1])).toEqual([2, 3, 4, 3, 2]);
  expect(levels([3, 3, 4, 2, 4, 6, 1])).toEqual([2, 2, 3, 2, 3, 4, 2]);
  expect(levels([1, 2, 3, 4, 5, 6])).toEqual([2, 3, 4, 5, 6, 6]);
});

it("can be copied, to try what comes next", () => {
  const outline = new Outline();
  outline.level(1);
  expect(outline.copy().level(2)).toBe(3);
  expect(outline.level(1)).toBe(2);
});
