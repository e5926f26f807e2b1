import { expect, it } from "vitest";
import type { EngineState, RunningRequest } from "../../src/client/types.ts";
import { afterEvent, rateOf, tape } from "./engine-state.ts";

const EMPTY = { running: 0, history: [], steps: [] } as unknown as EngineState;

it("adds what the stream tells, and forgets what is old", () => {
  let state = afterEvent(EMPTY, "snapshot", '{"running":3,"requests":[]}');
  expect(state).toMatchObject({ running: 3, history: [], steps: [] });
  for (let at = 0; at < 1000; at++) state = afterEvent(state, "point", JSON.stringify({ at }));
  expect([state.history.length, state.history[0]!.at, state.history.at(-1)!.at]).toEqual([900, 100, 999]);
  state = afterEvent(state, "steps", JSON.stringify([{ at: 1, decode: 2, prefill: 0 }]));
  expect(state.steps).toEqual([{ at: 1, decode: 2, prefill: 0 }]);
  expect(afterEvent(state, "something", "not even JSON")).toBe(state);
});

it("writes steps as a tape", () => {
  const steps = [
    { at: 0, decode: 1, prefill: 0 },
    { at: 900, decode: 8, prefill: 0 },
    { at: 950, decode: 8, prefill: 256 },
    { at: 990, decode: 0, prefill: 512 },
  ];
  expect(tape(steps, 1000, 500, 10)).toEqual(["d8", "d8+p256", "p512"]);
  expect(tape(steps, 1000, 500, 1)).toEqual(["p512"]);
});

it("has no rate before the first token", () => {
  expect(rateOf({ output: 0, age_ms: 100 } as RunningRequest)).toBe(null);
  expect(rateOf({ output: 10, age_ms: 500 } as RunningRequest)).toBe(20);
});
