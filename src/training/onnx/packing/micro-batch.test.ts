import { describe, expect, it } from "vitest";
import { layOut, type RowSequence, sharedLength } from "./micro-batch.ts";

const sequence = (index: number, prompt: number[], reply: number[]): RowSequence => ({
  index,
  ids: Int32Array.from([...prompt, ...reply]),
  predicting: Int32Array.from(reply, (_, i) => prompt.length + i - 1),
  targets: Int32Array.from(reply),
});

describe("sequences that begin alike share rows", () => {
  const members = [sequence(0, [1, 2, 3], [10, 11]), sequence(1, [1, 2, 3], [12, 13, 14, 15])];

  it("lays out the shared beginning once, followed by the rest of each sequence", () => {
    expect(sharedLength(members)).toBe(3);
    const batch = layOut([{ shared: 3, members }]);
    expect([...batch.ids]).toEqual([1, 2, 3, 10, 11, 12, 13, 14, 15]);
    expect([...batch.positions]).toEqual([0, 1, 2, 3, 4, 3, 4, 5, 6]);
    const [parent, ...own] = batch.segments;
    expect(parent).toEqual({ row: 0, count: 3, position: 0, parent: null });
    expect(own).toEqual([
      { row: 3, count: 2, position: 3, parent },
      { row: 5, count: 4, position: 3, parent },
    ]);
    // both read the last token of the prompt
    expect(batch.reads.map(({ row, target }) => [row, target])).toEqual([
      [2, 10],
      [3, 11],
      [2, 12],
      [5, 13],
      [6, 14],
      [7, 15],
    ]);
  });

  it("shares trained tokens too, and makes no empty segments", () => {
    const whole = sequence(0, [1], [5, 6]);
    const longer = sequence(1, [1], [5, 6, 7]);
    expect(sharedLength([whole, longer])).toBe(3);
    const { segments, reads } = layOut([{ shared: 3, members: [whole, longer] }]);
    expect(segments.map(({ row, count }) => [row, count])).toEqual([
      [0, 3],
      [3, 1],
    ]);
    expect(reads.map(({ row, target, sequence, token }) => [row, target, sequence, token])).toEqual([
      [0, 5, 0, 0],
      [1, 6, 0, 1],
      [0, 5, 1, 0],
      [1, 6, 1, 1],
      [2, 7, 1, 2],
    ]);
  });

  it("shares only what all sequences have in common", () => {
    expect(sharedLength([sequence(0, [1, 2, 3], [5]), sequence(1, [1, 9, 3], [5])])).toBe(1);
    expect(sharedLength([members[0]!])).toBe(0);
  });
});
