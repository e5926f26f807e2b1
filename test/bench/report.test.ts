import { describe, expect, it } from "vitest";
import { DecodeLap } from "../../bench/contenders/decode-lap.ts";
import { readFlags } from "../../bench/flags.ts";
import { cellName, type Entrant, entrants } from "../../bench/plan.ts";
import { median } from "../../bench/process/stopwatch.ts";
import { prefillFlops, wholeLayersFlops } from "../../bench/report/flops.ts";
import { agreements, type BenchResults, ratio, strangers } from "../../bench/report/measurements.ts";
import { report } from "../../bench/report/report.ts";
import { targets } from "../../bench/report/targets.ts";
import type { EntrantResult } from "../../bench/rounds.ts";
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";

const config = readModelConfig("test/fixtures/llama");
const { plan } = readFlags(["--quick", "--threads", "2"]);

/** Laps with `speed` tokens per second in every cell, on two busy threads. */
function entrantResult(entrant: Entrant, speed: number, scores = [-1, -2]): EntrantResult {
  const lap = { tokens: 100, seconds: 100 / speed, cpuSeconds: 200 / speed };
  const memory = { residentBytes: 2 ** 20, peakBytes: 2 ** 21 };
  const laps = new Map(plan.cells.map((cell) => [cellName(cell), [lap, lap, lap]]));
  return { entrant, laps, scores, greedy: [1, 2, 3], afterPrefill: memory, atEnd: memory, failure: null };
}

function resultsOf(results: EntrantResult[]): BenchResults {
  const packages = { flywheel: "1.0.0", "node-llama-cpp": null };
  return {
    startedAt: new Date("2030-01-02T03:04:05Z"),
    quick: true,
    plan,
    machine: {
      cpu: "A CPU",
      instructionSets: ["AVX-512", "AVX2"],
      kernels: "native (avx2, int8 by words)",
      cores: 2,
      memoryBytes: 2 ** 33,
      system: "Linux",
      node: "v20",
      packages,
      load: 3,
    },
    model: "random weights",
    config,
    entrants: results,
    gemm: [{ tokens: 2 * prefillFlops(config, 512), seconds: 512 / 100, cpuSeconds: 1 }],
    int8Products: new Map(
      plan.cells.slice(0, 2).map((cell) => [cellName(cell), [{ tokens: 90, seconds: 1, cpuSeconds: 2 }]]),
    ),
    prefix: [{ coldSeconds: 0.9, cachedSeconds: 0.1, cachedTokens: 992 }],
  };
}

const [ours32, flash32] = entrants(plan, "f32") as [Entrant, Entrant];
const [ours, flash, plain] = entrants(plan, "int8") as [Entrant, Entrant, Entrant];

describe("measurements", () => {
  it("compares with the other engine's fastest variant", () => {
    const results = resultsOf([entrantResult(ours, 300), entrantResult(flash, 100), entrantResult(plain, 200)]);
    for (const cell of plan.cells) {
      expect(ratio(results, "llama.cpp", "int8", cell, "seconds")).toBeCloseTo(1.5);
      expect(ratio(results, "transformers.js", "int8", cell, "seconds")).toBeNull();
    }
  });

  it("finds an engine that computed another model", () => {
    const results = resultsOf([entrantResult(ours32, 1), entrantResult(flash32, 1, [-1, -2.5])]);
    expect(agreements(results)).toMatchObject([{ largest: 0.5, mean: 0.25, sameTokens: 3 }]);
    expect(strangers(results)).toHaveLength(1);
    expect(report(results)).toContain("llama.cpp f32 computed another model");
  });

  it("treats NaN log-probabilities as another model", () => {
    const results = resultsOf([entrantResult(ours32, 1), entrantResult(flash32, 1, [Number.NaN, -2])]);
    expect(strangers(results)).toHaveLength(1);
  });

  it("judges the targets", () => {
    const [other] = entrants(plan, "int8").filter(({ engine }) => engine === "transformers.js");
    const others = [entrantResult(plain, 200), entrantResult(other!, 250)];
    const results = resultsOf([entrantResult(ours32, 100), entrantResult(ours, 240), ...others]);
    expect(targets(results)).toMatchObject([
      { text: expect.stringContaining("in every cell"), met: true },
      { text: expect.stringContaining("at batch 16"), met: false },
      {
        text: expect.stringContaining("transformers.js"),
        met: false,
        measured: expect.stringMatching(/^lowest 0.96 ×/),
      },
      { text: expect.stringContaining("products alone"), met: true, measured: expect.stringMatching(/^lowest 2.67 ×/) },
      { text: expect.stringContaining("peak"), met: false, measured: expect.stringMatching(/^50 %/) },
      { text: expect.stringContaining("prefix"), met: true },
    ]);
  });

  it("leaves a target open if it was not measured", () => {
    for (const target of targets({ ...resultsOf([]), gemm: [], prefix: [] })) {
      expect(target).toMatchObject({ measured: "not measured", met: null });
    }
  });

  it("compares the runtime's products alone with llama.cpp, if they were measured", () => {
    const results = resultsOf([entrantResult(ours, 30), entrantResult(flash, 50), entrantResult(plain, 100)]);
    const page = report(results);
    expect(page).toMatch(/\| products alone, tokens per second \| 90 \| 90 \| –/);
    expect(page).toMatch(/\| divided by llama\.cpp's whole steps \| 0\.90 \| 0\.90 \| –/);
    expect(report({ ...results, int8Products: new Map() })).not.toContain("products alone, tokens");
  });

  it("omits the comparisons if no other engine ran", () => {
    const sections = (entrants: EntrantResult[]) =>
      report(resultsOf(entrants)).match(/^## Speed relative|^## The same/gm);
    expect(sections([entrantResult(ours32, 1)])).toBeNull();
    expect(sections([entrantResult(ours32, 1), entrantResult(flash32, 1)])).toHaveLength(2);
  });

  it("names the machine, says that it was busy, and lists engines that failed", () => {
    const failed = { ...entrantResult(flash, 1), laps: new Map(), failure: "not installed: do this\nstack" };
    const page = report(resultsOf([entrantResult(ours, 300), failed]));
    expect(page).toContain("# Benchmark, 2030-01-02, A CPU, 2 cores");
    expect(page).toContain("do not quote these numbers");
    expect(page).toContain("kernels native (avx2, int8 by words)");
    expect(page).toContain("- llama.cpp q8_0: not installed: do this\n");
    expect(page).toContain("| flywheel int8 | 300 |");
    expect(page).toContain("node-llama-cpp not installed");
  });
});

describe("measuring", () => {
  it("times the steps after the skipped ones", () => {
    const lap = new DecodeLap(2, 2, 3);
    for (let i = 0; i < 9; i++) lap.add(1);
    expect(() => lap.result).toThrow(/9 of 10/);
    lap.add(1);
    expect(lap.result.tokens).toBe(6);
  });

  it("takes the median", () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
    expect(() => median([])).toThrow();
  });
});

describe("flags", () => {
  it("refuses unknown flags and values", () => {
    expect(() => readFlags(["--threads", "0"])).toThrow(/positive whole number/);
    expect(() => readFlags(["--precisions", "int8,int2"])).toThrow(/int2/);
    expect(() => readFlags(["--faster"])).toThrow();
  });
});

it("counts only keys, values and the last position in a prompt's last layer", () => {
  expect(prefillFlops(config, 1)).toBe(wholeLayersFlops(config, 1));
  const { hiddenSize, intermediateSize, numHeads, headDim } = config;
  const heads = numHeads * headDim;
  const saved = 2 * heads * hiddenSize + 3 * hiddenSize * intermediateSize;
  // The attention of nine positions is saved too: one key, then two, and so on.
  const pairs = 45;
  expect(wholeLayersFlops(config, 10) - prefillFlops(config, 10)).toBe(2 * 9 * saved + 4 * pairs * heads);
});
