import { expect, it } from "vitest";
import { Graph } from "../../graph/graph.ts";
import { floats, GraphSession } from "../../graph/session.ts";
import { blockPlaces, weightsOf } from "./blockwise-attention.ts";

it("gives hidden positions weight exactly 0 and others their exponential, in rows of any length", async () => {
  const g = new Graph();
  g.output("weights", weightsOf(g, g.input("scores", ["n"]), g.input("highest", [1])));
  const session = await GraphSession.create(g, { threads: 1 });
  for (let size = 1; size <= 70; size++) {
    const scores = Float32Array.from({ length: size }, (_, i) => (i % 3 === 0 ? -Infinity : 5 - i));
    const highest = Float32Array.of(5);
    const { weights } = await session.run({ scores: floats(scores, [size]), highest: floats(highest, [1]) });
    for (const [i, weight] of (weights!.data as Float32Array).entries()) {
      if (scores[i] === -Infinity) expect(Object.is(weight, 0)).toBe(true);
      else expect(weight / Math.exp(scores[i]! - 5)).toBeCloseTo(1, 5);
    }
  }
  await session.close();
});

it("gives every token a place in its block, and repeats the last one after it", () => {
  expect(Array.from(blockPlaces(5, 3, 2), Number)).toEqual([5, 6, 7, 7]);
  expect(Array.from(blockPlaces(0, 4, 2), Number)).toEqual([0, 1, 2, 3]);
  expect(blockPlaces(0, 0, 2)).toHaveLength(0);
  // One position of the first block is there already and stands before all rows, of which the chunk's are 5, 6, 7.
  expect(Array.from(blockPlaces(5, 3, 3, 1), Number)).toEqual([0, 6, 7, 8, 8, 8]);
});
