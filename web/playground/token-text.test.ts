import { expect, it } from "vitest";
import { nextIndex } from "./token-text.tsx";

it("walks along tokens by keyboard and stays inside", () => {
  expect(nextIndex("ArrowRight", null, 3)).toBe(0);
  expect(nextIndex("ArrowRight", 2, 3)).toBe(2);
  expect(nextIndex("ArrowLeft", 0, 3)).toBe(0);
  expect(nextIndex("ArrowDown", 1, 30)).toBe(11);
  expect(nextIndex("End", 0, 30)).toBe(29);
  expect(nextIndex("Escape", 4, 30)).toBe(null);
  expect(nextIndex("x", 4, 30)).toBe(undefined);
  expect(nextIndex("ArrowRight", null, 0)).toBe(undefined);
});
