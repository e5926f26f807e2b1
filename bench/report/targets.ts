// The engine's speed targets, checked against a run.

import { type Cell, cellName } from "../plan.ts";
import { median } from "../process/stopwatch.ts";
import { type BenchResults, best, productsSpeed, ratio, shareOfPeak } from "./measurements.ts";

export interface Target {
  text: string;
  measured: string;
  /** null = not measured in this run. */
  met: boolean | null;
}

const LARGE_BATCH = 16;

export function targets(results: BenchResults): Target[] {
  return [
    speedTarget(results, "int8 at least 1.0 × llama.cpp q8_0 in every cell", 1, () => true, llamaRatio),
    speedTarget(results, `int8 at least 2.0 × llama.cpp q8_0 at batch ${LARGE_BATCH} and more`, 2, isLarge, llamaRatio),
    speedTarget(results, "int8 prompts at least 1.0 × transformers.js q8", 1, isPrompt, transformersRatio),
    speedTarget(results, "one int8 sequence at least 0.5 × the integer products alone", 0.5, isSingle, productsRatio),
    peakTarget(results),
    prefixTarget(results),
  ];
}

const isPrompt = (cell: Cell): boolean => cell.kind === "prefill";
const isSingle = (cell: Cell): boolean => cell.kind === "decode" && cell.batch === 1;
const isLarge = (cell: Cell): boolean => cell.kind === "decode" && cell.batch >= LARGE_BATCH;

type Ratio = (results: BenchResults, cell: Cell) => number | null;

const llamaRatio: Ratio = (results, cell) => ratio(results, "llama.cpp", "int8", cell, "seconds");
const transformersRatio: Ratio = (results, cell) => ratio(results, "transformers.js", "int8", cell, "seconds");
const productsRatio: Ratio = (results, cell) => {
  const [own, products] = [best(results, "flywheel", "int8", cell, "seconds"), productsSpeed(results, cell, "seconds")];
  return own === null || products === null ? null : own / products;
};

/** By wall time, over the cells that count. */
function speedTarget(
  results: BenchResults,
  text: string,
  wanted: number,
  counts: (cell: Cell) => boolean,
  ratioOf: Ratio,
): Target {
  const found: { name: string; value: number }[] = [];
  for (const cell of results.plan.cells.filter(counts)) {
    const value = ratioOf(results, cell);
    if (value !== null) found.push({ name: cellName(cell), value });
  }
  if (found.length === 0) return { text, measured: "not measured", met: null };
  const lowest = found.reduce((a, b) => (b.value < a.value ? b : a));
  const missed = found.filter(({ value }) => value < wanted).length;
  const measured = `lowest ${lowest.value.toFixed(2)} × (${lowest.name}); ${missed} of ${found.length} cells below`;
  return { text, measured, met: missed === 0 };
}

function peakTarget(results: BenchResults): Target {
  const text = "f32 prefill of 512 tokens at least 85 % of the matrix product's peak";
  const share = shareOfPeak(results);
  if (share === null) return { text, measured: "not measured", met: null };
  const part = share.reached / share.peak;
  const whole = `${((100 * share.whole) / share.peak).toFixed(0)} % with all of the last layer counted`;
  const measured = `${(100 * part).toFixed(0)} % (${giga(share.reached)} of ${giga(share.peak)} GFLOP/s; ${whole})`;
  return { text, measured, met: part >= 0.85 };
}

function prefixTarget({ prefix }: BenchResults): Target {
  const text = "a cached 1,000-token prefix cuts the time to the first token at least 8 ×";
  if (prefix.length === 0) return { text, measured: "not measured", met: null };
  const cold = median(prefix.map((attempt) => attempt.coldSeconds));
  const cached = median(prefix.map((attempt) => attempt.cachedSeconds));
  const times = `${(1e3 * cold).toFixed(0)} ms → ${(1e3 * cached).toFixed(0)} ms`;
  const measured = `${(cold / cached).toFixed(1)} × (${times}, ${prefix[0]!.cachedTokens} tokens cached)`;
  return { text, measured, met: cold / cached >= 8 };
}

function giga(flops: number): string {
  return (flops / 1e9).toFixed(1);
}
