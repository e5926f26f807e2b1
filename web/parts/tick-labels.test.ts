import { expect, it } from "vitest";
import { number, percent } from "../format.ts";
import { onlyValue, tickDistances, tickLabels } from "./tick-labels.ts";

it("labels ticks, with more digits where values are nearly equal", () => {
  expect(tickLabels([0, 0.5, null, 1], number)).toEqual(["0", "0.5", "", "1"]);
  expect(tickLabels([1.0001, 1.0002, 1.0003], number)).toEqual(["1.0001", "1.0002", "1.0003"]);
  expect(tickLabels([0.99999, 1, 1.00001], number)).toEqual(["0.99999", "1", "1.00001"]);
  expect(tickLabels([12_345.1, 12_345.2], number)).toEqual(["12,345", ""]);
  expect(tickLabels([0.1, 0.101, 0.2], percent)).toEqual(["10 %", "", "20 %"]);
});

it("has ticks at round numbers, which their labels tell exactly", () => {
  expect(tickDistances(-2).slice(0, 9)).toEqual([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5]);
  expect(tickDistances(0)[0]).toBe(1);
  for (const distance of tickDistances(-4).filter((one) => one < 1)) {
    const ticks = [0, 1, 2].map((i) => Number((1 + i * distance).toFixed(4)));
    expect(tickLabels(ticks, number).map(Number)).toEqual(ticks);
  }
});

it("finds the value that never changes", () => {
  expect(onlyValue([[0, null, 0], [0]])).toBe(0);
  expect(onlyValue([[0, 1]])).toBeNull();
  expect(onlyValue([[null], []])).toBeNull();
});
