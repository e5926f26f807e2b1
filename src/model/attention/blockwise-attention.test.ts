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

it("finds every token a place in its block, and repeats the last one behind it", () => {
  // Three tokens from row 5 on, two key heads, blocks of two.
  const places = Array.from(blockPlaces(5, 3, 2, 2), Number);
  const [first, second, third] = [5, 6, 7].map((row) => [row * 2, row * 2 + 1]);
  const firstBlock = [first![0], second![0], first![1], second![1]];
  const secondBlock = [third![0], third![0], third![1], third![1]];
  expect(places).toEqual([...firstBlock, ...secondBlock]);
  expect(blockPlaces(0, 0, 2, 2)).toHaveLength(0);
});
