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
  for (const [i, array] of arrays.entries()) {
    expect(array.every((value: number) => value === 0)).toBe(true);
    array.fill(i + 1);
  }
  for (const [i, array] of arrays.entries()) expect(array.every((value: number) => value === i + 1)).toBe(true);
  // The large one has a piece of its own, of just its size.
  expect(new Set(arrays.map((array) => array.buffer)).size).toBe(3);
  expect(arrays[4]!.buffer.byteLength).toBe(80 * 2 ** 20);
  for (const { buffer } of arrays) expect(buffer.byteLength).toBeGreaterThan(32 * 2 ** 20);
});
