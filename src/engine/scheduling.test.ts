import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DEFAULT_SCHEDULING, rankOf, schedulingOptions } from "./scheduling.ts";

describe("schedulingOptions", () => {
  it("fills in defaults and refuses values that cannot work", () => {
    expect(schedulingOptions({ maxNumSeqs: 3 })).toEqual({ ...DEFAULT_SCHEDULING, maxNumSeqs: 3 });
    expect(() => schedulingOptions({ maxNumSeqs: 0 })).toThrow("maxNumSeqs must be a positive integer, got 0");
    expect(() => schedulingOptions({ maxNumBatchedTokens: 1.5 })).toThrow("maxNumBatchedTokens");
    expect(() => schedulingOptions({ maxNumPromptTokens: 0 })).toThrow("maxNumPromptTokens");
    expect(() => schedulingOptions({ agingSeconds: 0 })).toThrow("agingSeconds");
    expect(() => schedulingOptions({ agingSeconds: Number.NaN })).toThrow("agingSeconds");
  });

  it("holds every step to the given number of tokens", () => {
    expect(schedulingOptions({ maxNumBatchedTokens: 64 }).maxNumPromptTokens).toBe(64);
    expect(schedulingOptions({ maxNumBatchedTokens: 64, maxNumPromptTokens: 128 }).maxNumPromptTokens).toBe(128);
  });
});

describe("rankOf", () => {
  const options = { ...DEFAULT_SCHEDULING, agingSeconds: 10 };

  it("puts lower priorities first among requests of the same time", () => {
    expect(rankOf(-1, 1000, options)).toBeLessThan(rankOf(0, 1000, options));
    expect(rankOf(0, 1000, options)).toBeLessThan(rankOf(1, 1000, options));
  });

  it("makes up for one level of priority after exactly agingSeconds of waiting", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1000 }), fc.nat(1e6), fc.nat(2e4), (levels, arrival, later) => {
        const waited = levels * 10_000 - 10_000 + later; // one level around the crossing
        const old = rankOf(levels, arrival, options);
        const young = rankOf(0, arrival + waited, options);
        expect(young < old).toBe(waited < levels * 10_000);
      }),
    );
  });

  it("stays finite for any 64-bit priority and ignores priorities under fcfs", () => {
    expect(Number.isFinite(rankOf(-(2 ** 63), 1, options))).toBe(true);
    expect(rankOf(5, 1, { ...options, policy: "fcfs" })).toBe(rankOf(-5, 99, { ...options, policy: "fcfs" }));
  });
});
