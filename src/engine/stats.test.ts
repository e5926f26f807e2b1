import { expect, it } from "vitest";
import { StatCells } from "./stats.ts";

const step = { at: 1, decode: 1, prefill: 0 };

it("counts a step under the first bound that its tokens do not exceed", () => {
  const cells = new StatCells();
  const { bounds } = cells.read().stepTokens;
  for (const tokens of [0, 1, 8, 9, bounds.at(-1)!, bounds.at(-1)! + 1]) cells.addStep(tokens, step);
  const { counts, sum } = cells.read().stepTokens;
  const counted = [...bounds, Number.POSITIVE_INFINITY].map((bound, i) => [bound, counts[i]]);
  expect(counted.filter(([, count]) => count !== 0)).toEqual([
    [1, 1],
    [8, 1],
    [16, 1],
    [bounds.at(-1), 1],
    [Number.POSITIVE_INFINITY, 1],
  ]);
  expect(sum).toBe(1 + 8 + 9 + 2 * bounds.at(-1)! + 1);
  // one without a token is a step all the same
  expect(cells.read().steps).toBe(6);
});

it("keeps the last steps, and says nothing of those that are gone", () => {
  const cells = new StatCells();
  for (let at = 0; at < 5000; at++) cells.addStep(1, { ...step, at });
  expect(cells.steps(4998).map(({ at }) => at)).toEqual([4998, 4999]);
  const all = cells.steps(0).map(({ at }) => at);
  expect(all.at(-1)).toBe(4999);
  expect(all).toEqual(Array.from({ length: all.length }, (_, i) => 5000 - all.length + i));
  expect(all.length).toBeGreaterThan(4000);
});
