import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaults } from "../../test/reference/sampling.ts";
import type { RepetitionDetection, SamplingParams } from "../sampling/sampling-params.ts";
import { checkFinish, endsInRepetition } from "./finish.ts";

const eos = 2;
const stop = { reason: "stop", stopReason: null };
const length = { reason: "length", stopReason: null };
const repetition = { reason: "repetition", stopReason: "repetition_detected" };
const anyPair: RepetitionDetection = { minPatternSize: 1, maxPatternSize: 1, minCount: 2 };

describe("checkFinish", () => {
  const base: Partial<SamplingParams> = { eosTokenId: eos, stopTokenIds: [7, 8], maxTokens: 5 };
  const cases: [string, Partial<SamplingParams>, number[], unknown][] = [
    ["nothing yet", {}, [], null],
    ["an ordinary token", {}, [1], null],
    ["EOS", {}, [1, eos], stop],
    ["EOS earlier in the output", {}, [eos, 1], null],
    ["EOS under ignore_eos", { ignoreEos: true }, [1, eos], null],
    ["EOS that is also a stop id", { stopTokenIds: [eos] }, [eos], stop],
    [
      "EOS as a stop id under ignore_eos",
      { stopTokenIds: [eos], ignoreEos: true },
      [eos],
      { ...stop, stopReason: eos },
    ],
    ["a model without EOS", { eosTokenId: null }, [eos], null],
    ["another stop id", {}, [1, 8], { ...stop, stopReason: 8 }],
    ["a stop id under ignore_eos", { ignoreEos: true }, [7], { ...stop, stopReason: 7 }],
    ["the budget", {}, [1, 1, 1, 1, 1], length],
    ["EOS as the last token of the budget", {}, [1, 1, 1, 1, eos], stop],
    ["a stop id as the last token of the budget", {}, [1, 1, 1, 1, 7], { ...stop, stopReason: 7 }],
    ["a repetition", { repetitionDetection: anyPair }, [3, 4, 4], repetition],
    ["a repetition that is EOS", { repetitionDetection: anyPair }, [3, eos, eos], stop],
    ["a repetition at the end of the budget", { repetitionDetection: anyPair }, [3, 3, 3, 4, 4], length],
    ["EOS before min_tokens", { minTokens: 3 }, [1, eos], null],
    ["EOS as token number min_tokens", { minTokens: 3 }, [1, 1, eos], stop],
    ["a stop id before min_tokens", { minTokens: 3 }, [7], null],
    ["a repetition before min_tokens", { minTokens: 3, repetitionDetection: anyPair }, [4, 4], null],
    ["a repetition at min_tokens", { minTokens: 3, repetitionDetection: anyPair }, [4, 4, 4], repetition],
    ["min_tokens equal to the budget", { minTokens: 5 }, [1, 1, 1, 1, 1], length],
  ];
  it.each(cases)("%s", (_, params, output, expected) => {
    expect(checkFinish({ ...defaults, ...base, ...params }, output)).toEqual(expected);
  });
});

describe("repetition detection", () => {
  /** The output length at which detection fires first, within 60 tokens of a periodic output. */
  function firesAt(period: number, detection: RepetitionDetection): number | null {
    const output: number[] = [];
    for (let i = 0; i < 60; i++) {
      output.push(i % period);
      if (endsInRepetition(output, detection)) return output.length;
    }
    return null;
  }

  it.each([
    [3, 2, 3, 3, 9],
    [1, 1, 1, 3, 3],
    [1, 0, 1, 3, 3],
    [1, 2, 4, 3, 6],
    [2, 3, 8, 2, 8],
    [5, 1, 4, 2, null],
    [1, 0, 0, 0, null],
  ])("period %i, sizes %i..%i, %i copies: at token %s", (period, minPatternSize, maxPatternSize, minCount, at) => {
    expect(firesAt(period, { minPatternSize, maxPatternSize, minCount })).toBe(at);
  });

  it("agrees with comparing every pattern", () => {
    const obvious = (output: number[], { minPatternSize, maxPatternSize, minCount }: RepetitionDetection) => {
      for (let size = Math.max(1, minPatternSize); size <= maxPatternSize; size++) {
        if (size * minCount > output.length) return false;
        const copies = Array.from({ length: minCount }, (_, i) =>
          output.slice(output.length - size * (i + 1), output.length - size * i).join(),
        );
        if (new Set(copies).size === 1) return true;
      }
      return false;
    };
    const detections = fc
      .record({
        minPatternSize: fc.integer({ min: 0, max: 4 }),
        maxPatternSize: fc.integer({ min: 0, max: 12 }),
        minCount: fc.integer({ min: 2, max: 4 }),
      })
      .filter(({ minPatternSize, maxPatternSize }) => minPatternSize <= maxPatternSize);
    // Few different tokens and a repeated tail, so that both answers are frequent.
    const outputs = fc
      .tuple(fc.array(fc.nat(2)), fc.array(fc.nat(2), { minLength: 1, maxLength: 6 }), fc.nat(4))
      .map(([head, pattern, copies]) => [...head, ...Array.from({ length: copies }, () => pattern).flat()]);
    let detected = 0;
    fc.assert(
      fc.property(outputs, detections, (output, detection) => {
        const expected = obvious(output, detection);
        if (expected) detected++;
        expect(endsInRepetition(output, detection)).toBe(expected);
      }),
      { numRuns: 2000 },
    );
    expect(detected).toBeGreaterThan(300);
  });

  it("stays linear on an output that nearly repeats at every size", () => {
    // One odd token in a run: every pattern matches for thousands of tokens before it fails.
    const output = new Array<number>(200_000).fill(1);
    output[100_000] = 2;
    const detection = { minPatternSize: 50_001, maxPatternSize: 1_000_000_000, minCount: 2 };
    const before = process.cpuUsage();
    expect(endsInRepetition(output, detection)).toBe(false);
    expect(process.cpuUsage(before).user).toBeLessThan(500e3);
  });
});
