import { expect, it } from "vitest";
import { askedAndGot } from "./asked.ts";

const numbers = { sequence: 0, positions: [1, 2, 3, 4], values: { gradient: [-0.2, 0.1, -0.1, 0] } };

it("tells which tokens moved as asked, and the worst of the others first", () => {
  const { moved, asked, asAsked, share, against } = askedAndGot(
    numbers,
    [0, -1, -1, -1, -1],
    [0, -0.5, -0.9, -1.3, -2],
  );
  expect(moved.map(({ at, asked: wanted }) => [at, wanted])).toEqual([
    [1, 0.2],
    [2, -0.1],
    [3, 0.1],
    [4, -0],
  ]);
  expect([asked, asAsked]).toEqual([3, 1]);
  expect(share).toBeCloseTo(0.5);
  expect(against.map(({ at }) => at)).toEqual([3, 2]);
});

it("says nothing where nothing was asked", () => {
  const still = { sequence: 0, positions: [0], values: { gradient: [0] } };
  expect(askedAndGot(still, [-1], [-2])).toMatchObject({ asked: 0, share: 0, against: [] });
});
