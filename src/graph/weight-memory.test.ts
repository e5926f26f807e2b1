import { expect, it } from "vitest";
import { WeightMemory } from "./weight-memory.ts";

it("gives arrays of any type and size that do not overlap, in few large pieces", () => {
  const memory = new WeightMemory();
  const arrays = [
    memory.take(Int8Array, 3),
    memory.take(Float32Array, 5),
    memory.take(Uint8Array, 1),
    memory.take(Float32Array, 0),
    memory.take(Float32Array, 20 * 2 ** 20),
    memory.take(Int8Array, 7),
  ];
  /** The first element that differs from `wanted`, for each array. */
  const others = (wanted: (i: number) => number) =>
    arrays.map((array, i) => array.find((value: number) => value !== wanted(i)));
  const none = arrays.map(() => undefined);
  expect(others(() => 0)).toEqual(none);
  for (const [i, array] of arrays.entries()) array.fill(i + 1);
  expect(others((i) => i + 1)).toEqual(none);
  // The large array has its own piece, of exactly its size.
  expect(new Set(arrays.map((array) => array.buffer)).size).toBe(3);
  expect(arrays[4]!.buffer.byteLength).toBe(80 * 2 ** 20);
  for (const { buffer } of arrays) expect(buffer.byteLength).toBeGreaterThan(32 * 2 ** 20);
});
