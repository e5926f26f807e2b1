import { expect, it } from "vitest";
import { eachPiece, matrixOf, PIECE_ROWS, rowsOfTensors, rowsOfTransposed } from "./matrix-rows.ts";

/** [out, inputs]; every weight is its own number, counted from `start`. */
function tensor(out: number, inputs: number, start: number) {
  const values = Float32Array.from({ length: out * inputs }, (_, i) => start + i);
  return {
    values,
    shape: [out, inputs],
    readPart: (first: number, into: Float32Array) => into.set(values.subarray(first, first + into.length)),
  };
}

it("reads several tensors as one matrix, in pieces that cross tensor boundaries", () => {
  const inputs = 3;
  const parts = [tensor(5, inputs, 0), tensor(1, inputs, 100), tensor(7, inputs, 200)];
  const whole = parts.flatMap(({ values }) => [...values]);
  const matrix = rowsOfTensors(parts);
  expect(matrix).toMatchObject({ out: 13, inputs });
  for (let first = 0; first < matrix.out; first++) {
    for (let count = 1; first + count <= matrix.out; count++) {
      const wanted = whole.slice(first * inputs, (first + count) * inputs);
      expect([...matrix.read(first, count)]).toEqual(wanted);
    }
  }
});

it("reads rows of a tensor that is stored the other way round", () => {
  const { values } = tensor(3, 4, 0);
  const matrix = rowsOfTransposed({ shape: [3, 4], read: () => values });
  expect(matrix).toMatchObject({ out: 4, inputs: 3 });
  expect([...matrix.read(1, 2)]).toEqual([1, 5, 9, 2, 6, 10]);
});

it.each([
  [1, 8],
  [PIECE_ROWS, 100_000],
  [PIECE_ROWS + 1, 100_000],
  [1000, 1000],
])("visits each of %i rows of %i once, in order, in pieces of whole tiles", (out, inputs) => {
  const matrix = matrixOf(new Float32Array(out * inputs), out, inputs);
  let next = 0;
  eachPiece(matrix, (weights, first, count) => {
    expect(first).toBe(next);
    expect(first % PIECE_ROWS).toBe(0);
    expect(weights.length).toBe(count * inputs);
    next += count;
  });
  expect(next).toBe(out);
});
