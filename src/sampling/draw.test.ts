import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaults, referenceTruncate } from "../../test/reference/sampling.ts";
import { drawToken } from "./draw.ts";
import { randomKey, uniformAt } from "./random.ts";
import { LogitRow } from "./row.ts";
import { survivorFloor } from "./truncate.ts";

function scanned(logits: readonly number[]): LogitRow {
  const row = new LogitRow(logits.length);
  row.load(Float32Array.from(logits));
  row.scan();
  return row;
}

const logit = fc.oneof(
  // Multiples of 1/1024, so that different logits have different probabilities.
  fc.integer({ min: -3072, max: 3072 }).map((steps) => steps / 1024),
  fc.integer({ min: -2, max: 2 }),
  fc.constant(Number.NEGATIVE_INFINITY),
);
const logitRows = fc
  .array(logit, { minLength: 1, maxLength: 150, size: "max" })
  .filter((logits) => logits.some((value) => value > Number.NEGATIVE_INFINITY));
const temperatures = fc.constantFrom(0.1, 0.7, 1, 1.5);
const topKs = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 160 }));
const minPs = fc.constantFrom(0, 0, 0, 0.05, 0.3, 1);

describe("survivorFloor", () => {
  it("keeps the tokens that min_p and top_k keep", () => {
    fc.assert(
      fc.property(logitRows, temperatures, topKs, minPs, (logits, temperature, topK, minP) => {
        const row = scanned(logits);
        const floor = survivorFloor(row, temperature, minP, topK);
        const expected = referenceTruncate([...row.values], { ...defaults, temperature, topK, minP });
        for (const [id, probability] of expected.probabilities.entries()) {
          // What is 64 octaves less likely than the best counts as impossible.
          const octaves = Math.log2(Math.max(...expected.probabilities) / probability);
          if (expected.doubtful.has(id) || Math.abs(octaves - 64) < 1e-3) continue;
          expect(row.values[id]! >= floor).toBe(octaves < 64);
        }
      }),
      { numRuns: 300 },
    );
  });

  it("keeps all entries equal to the k-th largest", () => {
    const row = scanned([1, 5, 3, 3, 3, 0]);
    const survivors = (topK: number) => {
      const floor = survivorFloor(row, 1, 0, topK);
      return [...row.values.keys()].filter((id) => row.values[id]! >= floor);
    };
    expect(survivors(1)).toEqual([1]);
    expect(survivors(2)).toEqual([1, 2, 3, 4]);
    expect(survivors(4)).toEqual([1, 2, 3, 4]);
    expect(survivors(5)).toEqual([0, 1, 2, 3, 4]);
    expect(survivors(0)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(survivors(100)).toEqual([0, 1, 2, 3, 4, 5]);
  });
});

describe("drawToken", () => {
  const second = new Error("asked for a second number");

  /** Aims the first number at token `id`; true if it was kept. */
  function keeps(row: LogitRow, id: number, aim: number, temperature: number, topP: number, floor: number): boolean {
    try {
      const first = (attempt: number) => {
        if (attempt > 0) throw second;
        return aim;
      };
      expect(drawToken(row, temperature, topP, floor, first)).toBe(id);
      return true;
    } catch (error) {
      if (error === second) return false;
      throw error;
    }
  }

  it("keeps a token exactly if it is in the nucleus of the tokens that min_p and top_k left", () => {
    const settings = fc.record({
      temperature: temperatures,
      topK: topKs,
      minP: minPs,
      topP: fc.integer({ min: 10, max: 999 }).map((thousandths) => thousandths / 1000),
    });
    const answers = { kept: 0, dropped: 0 };
    fc.assert(
      fc.property(logitRows, settings, (logits, { temperature, topK, minP, topP }) => {
        const row = scanned(logits);
        const params = { ...defaults, temperature, topK, minP };
        const before = referenceTruncate([...row.values], params);
        const after = referenceTruncate([...row.values], { ...params, topP });
        fc.pre(before.doubtful.size === 0);
        const floor = survivorFloor(row, temperature, minP, topK);
        let cumulative = 0;
        for (const [id, probability] of before.probabilities.entries()) {
          if (probability > 1e-4 && !after.doubtful.has(id)) {
            const aim = cumulative + probability / 2;
            const kept = after.probabilities[id]! > 0;
            expect(keeps(row, id, aim, temperature, topP, floor)).toBe(kept);
            answers[kept ? "kept" : "dropped"]++;
          }
          cumulative += probability;
        }
      }),
      { numRuns: 500 },
    );
    expect(answers.kept).toBeGreaterThan(1000);
    expect(answers.dropped).toBeGreaterThan(1000);
  });

  /** Counts of each token in `draws` draws. */
  function frequencies(row: LogitRow, temperature: number, topP: number, topK: number, minP: number, draws: number) {
    const counts = new Array<number>(row.vocabSize).fill(0);
    const key = randomKey(4242n, 0);
    const floor = survivorFloor(row, temperature, minP, topK);
    for (let position = 0; position < draws; position++) {
      counts[drawToken(row, temperature, topP, floor, (attempt) => uniformAt(key, position, attempt))]!++;
    }
    return counts;
  }

  /** Chi-square against the reference, as standard deviations above its mean; tokens it drops must not occur. */
  function deviation(counts: readonly number[], probabilities: readonly number[]): number {
    const draws = counts.reduce((a, b) => a + b, 0);
    let [chiSquare, cells] = [0, 0];
    for (const [id, probability] of probabilities.entries()) {
      if (probability === 0) expect(counts[id]).toBe(0);
      if (probability * draws < 5) continue;
      chiSquare += (counts[id]! - probability * draws) ** 2 / (probability * draws);
      cells++;
    }
    const freedom = Math.max(1, cells - 1);
    return (chiSquare - freedom) / Math.sqrt(2 * freedom);
  }

  const spread = Array.from({ length: 80 }, (_, i) => ((i * 37) % 80) / 16 - 2);
  const tied = Array.from({ length: 80 }, (_, i) => (i * 7) % 4);
  const cases = [
    { name: "temperature only", temperature: 0.7, topP: 1, topK: 0, minP: 0 },
    { name: "top_p", temperature: 1, topP: 0.9, topK: 0, minP: 0 },
    { name: "small top_p", temperature: 1.5, topP: 0.07, topK: 0, minP: 0 },
    { name: "top_k", temperature: 1, topP: 1, topK: 13, minP: 0 },
    { name: "min_p", temperature: 1, topP: 1, topK: 0, minP: 0.2 },
    { name: "all", temperature: 0.8, topP: 0.8, topK: 30, minP: 0.05 },
  ];
  for (const { name, ...settings } of cases) {
    for (const [shape, logits] of Object.entries({ spread, tied })) {
      it(`draws with the probabilities left by ${name}, ${shape} logits`, () => {
        const row = scanned(logits);
        const { temperature, topP, topK, minP } = settings;
        const expected = referenceTruncate([...row.values], { ...defaults, ...settings });
        expect(expected.doubtful.size).toBe(0);
        const counts = frequencies(row, temperature, topP, topK, minP, 40_000);
        expect(deviation(counts, expected.probabilities)).toBeLessThan(4);
      });
    }
  }

  it("splits equal tokens at the edge by id", () => {
    const row = scanned(new Array<number>(10).fill(2.5));
    const counts = frequencies(row, 1, 0.25, 0, 0, 3000);
    expect(counts.map((count) => count > 0)).toEqual([...new Array(3).fill(true), ...new Array(7).fill(false)]);
    expect(deviation(counts, [1 / 3, 1 / 3, 1 / 3, 0, 0, 0, 0, 0, 0, 0])).toBeLessThan(4);
  });

  it("always keeps the most likely token", () => {
    const row = scanned([0, 3, 3, 1]);
    for (const topP of [1e-9, 1e-300]) expect(frequencies(row, 1, topP, 0, 0, 50)).toEqual([0, 50, 0, 0]);
  });
});
