import { expect, it } from "vitest";
import type { TensorReader } from "./checkpoint/checkpoint.ts";
import { Embedding } from "./embedding.ts";

function stored(dtype: "F32" | "F16" | "BF16", values: Float32Array | Uint16Array): TensorReader {
  const bytes = new Uint8Array(values.buffer);
  const reader = { name: "embed", file: "model.safetensors", dtype, shape: [values.length / 2, 2] };
  return { ...reader, elements: values.length, bytes: () => bytes } as unknown as TensorReader;
}

it.each([
  ["F32", Float32Array.of(1, 2, 3, -4)],
  ["F16", Uint16Array.of(0x3c00, 0x4000, 0x4200, 0xc400)],
  ["BF16", Uint16Array.of(0x3f80, 0x4000, 0x4040, 0xc080)],
] as const)("looks up rows of %s, times its scale", (dtype, values) => {
  const target = new Float32Array(4);
  new Embedding(stored(dtype, values), 2).copyTo(1, target, 1);
  expect([...target]).toEqual([0, 0, 6, -8]);
});

it.each([
  ["F32", Float32Array.of(1, Number.NaN)],
  ["F16", Uint16Array.of(0x3c00, 0xfc00)],
  ["BF16", Uint16Array.of(0x3f80, 0x7f80)],
] as const)("refuses what is no finite number in %s", (dtype, values) => {
  expect(() => new Embedding(stored(dtype, values), 1)).toThrow(
    'model.safetensors: tensor "embed" has a value that is not finite at 1',
  );
});
