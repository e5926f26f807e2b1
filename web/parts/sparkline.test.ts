import { expect, it } from "vitest";
import { sparklinePoints } from "./sparkline.tsx";

it("spans the box from the first value to the last, the highest on top", () => {
  expect(sparklinePoints([0, 1, 0.5])).toBe("0,22 50,2 100,12");
});

it("draws equal values in the middle", () => {
  expect(sparklinePoints([3, 3])).toBe("0,12 100,12");
});
