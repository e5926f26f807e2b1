import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaults, referenceEdits } from "../../test/reference/sampling.ts";
import { LogitEdits } from "./edits.ts";
import type { LogitRow } from "./row.ts";
import { sharedRow } from "./row.ts";
import type { SamplingParams } from "./sampling-params.ts";
import { tokenSet } from "./token-set.ts";

const masked = Number.NEGATIVE_INFINITY;

function loaded(logits: ArrayLike<number>): LogitRow {
  const row = sharedRow(logits.length);
  row.load(Float32Array.from(logits));
  return row;
}

function edit(logits: number[], params: Partial<SamplingParams>, prompt: number[], output: number[]) {
  const edits = new LogitEdits({ ...defaults, ...params }, prompt, logits.length);
  for (const id of output) edits.note(id);
  const row = loaded(logits);
  const edited = edits.apply(row, output);
  return { values: [...row.values], edited };
}

describe("token sets", () => {
  it("forbid ids that are not in them, at any size", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 }), fc.array(fc.integer({ min: -5, max: 250 })), (size, ids) => {
        const row = loaded(new Array(size).fill(1));
        row.allowOnly(tokenSet(ids, size));
        expect([...row.values]).toEqual(Array.from({ length: size }, (_, id) => (ids.includes(id) ? 1 : masked)));
      }),
    );
  });

  it("forbid ids beyond their end and ignore bits beyond the vocabulary", () => {
    const row = loaded(new Array(70).fill(1));
    row.allowOnly(Int32Array.of(-1));
    expect([...row.values]).toEqual(Array.from({ length: 70 }, (_, id) => (id < 32 ? 1 : masked)));
    const short = loaded([1, 1, 1]);
    short.allowOnly(Int32Array.of(0b11111_101, -1, -1, -1));
    expect([...short.values]).toEqual([1, masked, 1]);
  });
});

describe("logit edits", () => {
  it("agree with the reference in any combination", () => {
    const id = fc.integer({ min: 0, max: 11 });
    const logits = fc.array(fc.oneof(fc.float({ noNaN: true, min: -20, max: 20 }), fc.constant(masked)), {
      minLength: 12,
      maxLength: 12,
    });
    const params = fc.record({
      allowedTokenIds: fc.option(fc.array(id, { minLength: 1 })),
      badWords: fc.array(fc.array(id, { minLength: 1, maxLength: 3 }), { maxLength: 4 }),
      minTokens: fc.integer({ min: 0, max: 6 }),
      minTokensMask: fc.array(id, { maxLength: 3 }),
      logitBias: fc.uniqueArray(fc.tuple(id, fc.integer({ min: -100, max: 100 })), { selector: ([key]) => key }),
      repetitionPenalty: fc.constantFrom(1, 0.5, 1.3, 2),
      frequencyPenalty: fc.constantFrom(0, -2, 0.7),
      presencePenalty: fc.constantFrom(0, -1, 1.5),
    });
    fc.assert(
      fc.property(logits, params, fc.array(id), fc.array(id, { maxLength: 8 }), (row, some, prompt, output) => {
        const { values, edited } = edit(row, some, prompt, output);
        const before = [...Float32Array.from(row)];
        const expected = referenceEdits(before, { ...defaults, ...some }, prompt, output);
        for (const [at, value] of expected.entries()) {
          if (value === masked) expect(values[at]).toBe(masked);
          else expect(Math.abs(values[at]! - value)).toBeLessThan(1e-4);
        }
        if (!edited) expect(values).toEqual(before);
      }),
      { numRuns: 500 },
    );
  });

  it("penalise repetition once per id of prompt or output, the other two by the output alone", () => {
    const logits = [4, 4, -4, 4, -4];
    expect(edit(logits, { repetitionPenalty: 2 }, [0, 0, 2], [1, 1]).values).toEqual([2, 2, -8, 4, -4]);
    expect(edit(logits, { frequencyPenalty: 0.5 }, [0, 2], [1, 1, 4]).values).toEqual([4, 3, -4, 4, -4.5]);
    expect(edit(logits, { presencePenalty: 0.5 }, [0, 2], [1, 1, 4]).values).toEqual([4, 3.5, -4, 4, -4.5]);
  });

  it("add the bias before the repetition penalty and subtract the others after it", () => {
    const all: Partial<SamplingParams> = {
      logitBias: [[0, 3]],
      repetitionPenalty: 2,
      frequencyPenalty: 0.25,
      presencePenalty: 1,
    };
    // (-1 + 3) / 2 - 0.25 * 2 - 1
    expect(edit([-1, 0], all, [], [0, 0]).values).toEqual([-0.5, 0]);
  });

  it("stay finite under extreme repetition penalties", () => {
    for (const repetitionPenalty of [1e-45, 1e45]) {
      const { values } = edit([5, -5, masked], { repetitionPenalty }, [0, 1, 2], []);
      expect(values.slice(0, 2).filter((value) => !Number.isFinite(value))).toHaveLength(0);
      expect(values[2]).toBe(masked);
    }
  });

  it("forbid the last token of a bad word only if the output ends with the rest of it", () => {
    const words = { badWords: [[1, 2, 3], [4], [3, 3]] };
    const forbidden = (output: number[], prompt: number[] = []) =>
      edit([0, 0, 0, 0, 0], words, prompt, output).values.flatMap((value, id) => (value === masked ? [id] : []));
    expect(forbidden([])).toEqual([4]);
    expect(forbidden([], [1, 2])).toEqual([4]);
    expect(forbidden([2], [1])).toEqual([4]);
    expect(forbidden([0, 1, 2])).toEqual([3, 4]);
    expect(forbidden([1, 2, 0])).toEqual([4]);
    expect(forbidden([3])).toEqual([3, 4]);
  });

  it("hold back stop ids for the first min_tokens tokens", () => {
    const params = { minTokens: 2, minTokensMask: [0, 3] };
    expect(edit([1, 1, 1, 1], params, [], []).values).toEqual([masked, 1, 1, masked]);
    expect(edit([1, 1, 1, 1], params, [], [1]).values).toEqual([masked, 1, 1, masked]);
    expect(edit([1, 1, 1, 1], params, [], [1, 1])).toEqual({ values: [1, 1, 1, 1], edited: false });
  });

  it("ignore ids outside the vocabulary", () => {
    const params: Partial<SamplingParams> = {
      allowedTokenIds: [0, 1, 2, 99],
      badWords: [[77], []],
      logitBias: [[50, 5]],
      minTokens: 1,
      minTokensMask: [60],
      repetitionPenalty: 2,
      frequencyPenalty: 1,
    };
    expect(edit([1, 2, 3], params, [1000], [1001]).values).toEqual([1, 2, 3]);
  });
});
