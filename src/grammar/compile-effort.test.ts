import { expect, test } from "vitest";
import { spendEffort, withinEffort } from "./compile-effort.ts";
import { GrammarError } from "./grammar-error.ts";

const spend = (units: number) => () => spendEffort(units);

test("refuses work beyond the limit, however it is divided", () => {
  expect(() => withinEffort(spend(20_000_001))).toThrow(GrammarError);
  const inSteps = (): void => {
    for (let step = 0; step < 21; step++) spendEffort(1_000_000);
  };
  expect(() => withinEffort(inSteps)).toThrow(/too much work to compile/);
});

test("every compilation has the whole limit, also after one that was refused", () => {
  for (let time = 0; time < 3; time++) {
    expect(() => withinEffort(spend(19_000_000))).not.toThrow();
    expect(() => withinEffort(spend(30_000_000))).toThrow(GrammarError);
  }
});

test("work outside of a compilation is not counted", () => {
  expect(spend(1e12)).not.toThrow();
});
