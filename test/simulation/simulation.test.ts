// The simulation itself: what a seed does, it does again. `npm run simulate` plays as many seeds as there is time for.

import { expect, it } from "vitest";
import { simulate } from "./simulation.ts";

const SEED = Number(process.env.FLYWHEEL_PROPERTY_SEED);

it("plays a seed twice in the same way, whatever was played between", async () => {
  const first = await simulate(SEED);
  const other = await simulate(SEED + 1);
  const again = await simulate(SEED);
  for (const { wrong, lines } of [first, other]) expect(wrong, lines.join("\n")).toEqual([]);
  expect([again.digest, again.events, again.faults]).toEqual([first.digest, first.events, first.faults]);
  expect(other.digest).not.toBe(first.digest);
});

it("leaves the clock and the timers of Node as they were", async () => {
  const before = Date.now();
  const { ms } = await simulate(SEED + 2);
  expect(ms).toBeGreaterThan(7_200_000);
  expect(Date.now() - before).toBeLessThan(ms);
  await new Promise((resolve) => setTimeout(resolve, 1));
});
