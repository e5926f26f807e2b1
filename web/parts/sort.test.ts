import { expect, it } from "vitest";
import { nextOrder, orderFrom, sortedBy } from "./sort.tsx";

it("sorts numbers by size and texts by the alphabet, with what is missing last both ways", () => {
  const rows = [3, null, 1, Number.NaN, 2];
  expect(sortedBy(rows, (row) => row, false)).toEqual([1, 2, 3, null, Number.NaN]);
  expect(sortedBy(rows, (row) => row, true)).toEqual([3, 2, 1, null, Number.NaN]);
  expect(sortedBy(["job 10", "Job 9", "a"], (row) => row, false)).toEqual(["a", "Job 9", "job 10"]);
});

it("keeps equal rows in their order", () => {
  const rows = ["b1", "a1", "b2"];
  for (const isDown of [false, true]) expect(sortedBy(rows, () => 0, isDown)).toEqual(rows);
});

it("goes up, down, and back to how the rows came", () => {
  const up = nextOrder(null, "reward");
  const down = nextOrder(up, "reward");
  expect([up, down, nextOrder(down, "reward")]).toEqual([orderFrom("reward"), orderFrom("-reward"), null]);
  expect(nextOrder(down, "step")).toEqual({ title: "step", isDown: false });
  expect(orderFrom("")).toBeNull();
});
