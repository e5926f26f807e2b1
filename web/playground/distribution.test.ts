import { expect, it } from "vitest";
import { distribution } from "./distribution.ts";

it("counts answers that mean the same, the most frequent first", () => {
  expect(distribution(["Blue.", "red", " blue", "Blue!\n", "green"])).toEqual([
    { text: "Blue.", count: 3, replies: [0, 2, 3] },
    { text: "red", count: 1, replies: [1] },
    { text: "green", count: 1, replies: [4] },
  ]);
  expect(distribution([])).toEqual([]);
});
