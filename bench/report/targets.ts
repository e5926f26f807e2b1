// The engine's speed targets, checked against a run.

import { cellName } from "../plan.ts";
import { median } from "../process/stopwatch.ts";
import { type BenchResults, ratio, shareOfPeak } from "./measurements.ts";

export interface Target {
  text: string;
  measured: string;
  /** null = not measured in this run. */
  met: boolean | null;
}

const LARGE_BATCH = 16;

export function targets(results: BenchResults): Target[] {
  return [
    speedTarget(results, "int8 at least 1.0 × llama.cpp q8_0 in every cell", 1, 1),
    speedTarget(results, `int8 at least 1.3 × llama.cpp q8_0 at batch ${LARGE_BATCH} and more`, 1.3, LARGE_BATCH),
    peakTarget(results),
    prefixTarget(results),
  ];
}

/** By wall time, over all cells or those with at least `minBatch` sequences. */
function speedTarget(results: BenchResults, text: string, wanted: number, minBatch: number): Target {
  const found: { name: string; value: number }[] = [];
  for (const cell of results.plan.cells) {
    if (minBatch > 1 && (cell.kind === "prefill" || cell.batch < minBatch)) continue;
    const value = ratio(results, "llama.cpp", "int8", cell, "seconds");
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
