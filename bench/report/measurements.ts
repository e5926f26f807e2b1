// The results of a run and the numbers derived from them: medians over the repetitions, ratios between engines, and
// differences between the models they computed. report.ts turns them into text.

import type { ModelConfig } from "../../src/model/checkpoint/model-config.ts";
import type { Precision } from "../contenders/contender.ts";
import { type Cell, cellName, type EngineName, type Plan } from "../plan.ts";
import { type Lap, median } from "../process/stopwatch.ts";
import type { EntrantResult } from "../rounds.ts";
import { prefillFlops, wholeLayersFlops } from "./flops.ts";
import type { Machine } from "./machine.ts";

export interface BenchResults {
  startedAt: Date;
  quick: boolean;
  plan: Plan;
  machine: Machine;
  /** Name and description of the checkpoint. */
  model: string;
  config: ModelConfig;
  entrants: readonly EntrantResult[];
  /** Laps of probes/gemm.ts. Their tokens are floating-point operations. */
  gemm: readonly Lap[];
  /** Laps of probes/int8-products.ts, by cell name. */
  int8Products: ReadonlyMap<string, readonly Lap[]>;
  /** Attempts of probes/prefix-cache.ts. */
  prefix: readonly { coldSeconds: number; cachedSeconds: number; cachedTokens: number }[];
}

export type Per = "seconds" | "cpuSeconds";

/** Tokens per second or CPU-second in a cell; null = not measured. */
export function speed({ laps }: EntrantResult, cell: Cell, per: Per): number | null {
  return speedOf(laps, cell, per);
}

/** The same for the integer products of our int8 steps alone. */
export function productsSpeed({ int8Products }: BenchResults, cell: Cell, per: Per): number | null {
  return speedOf(int8Products, cell, per);
}

function speedOf(lapsByCell: ReadonlyMap<string, readonly Lap[]>, cell: Cell, per: Per): number | null {
  const laps = lapsByCell.get(cellName(cell));
  const known = laps?.filter((lap) => !Number.isNaN(lap[per])) ?? [];
  return known.length === 0 ? null : median(known.map((lap) => lap.tokens / lap[per]));
}

/** The fastest of an engine's variants in a cell. */
export function best(results: BenchResults, engine: EngineName, precision: Precision, cell: Cell, per: Per) {
  const speeds = results.entrants
    .filter(({ entrant }) => entrant.engine === engine && entrant.precision === precision)
    .map((result) => speed(result, cell, per))
    .filter((value) => value !== null);
  return speeds.length === 0 ? null : Math.max(...speeds);
}

/** Our speed divided by that of another engine's fastest variant. */
export function ratio(results: BenchResults, peer: EngineName, precision: Precision, cell: Cell, per: Per) {
  const ours = best(results, "flywheel", precision, cell, per);
  const theirs = best(results, peer, precision, cell, per);
  return ours === null || theirs === null ? null : ours / theirs;
}

/** Float32 prefill of 512 tokens as a share of one large matrix product. For `whole` see wholeLayersFlops. */
export function shareOfPeak(results: BenchResults): Record<"peak" | "reached" | "whole", number> | null {
  const cell: Cell = { kind: "prefill", tokens: 512 };
  const tokensPerSecond = best(results, "flywheel", "f32", cell, "seconds");
  if (tokensPerSecond === null || results.gemm.length === 0) return null;
  const peak = median(results.gemm.map((lap) => lap.tokens / lap.seconds));
  const perSecond = (flops: typeof prefillFlops) =>
    (flops(results.config, cell.tokens) / cell.tokens) * tokensPerSecond;
  return { peak, reached: perSecond(prefillFlops), whole: perSecond(wholeLayersFlops) };
}

export interface Agreement {
  result: EntrantResult;
  /** Differences of log-probabilities from the reference's, in nats. */
  largest: number;
  mean: number;
  /** Number of most likely tokens, from the start, that equal the reference's. */
  sameTokens: number;
}

/** Compares every engine with our float32 model. Empty if that did not run. */
export function agreements({ entrants }: BenchResults): Agreement[] {
  const reference = entrants.find(({ entrant }) => entrant.engine === "flywheel" && entrant.precision === "f32");
  if (reference === undefined || reference.scores.length === 0) return [];
  return entrants
    .filter((result) => result !== reference && result.scores.length > 0)
    .map((result) => {
      const differences = result.scores.map((score, i) => Math.abs(score - reference.scores[i]!));
      const first = result.greedy.findIndex((token, i) => token !== reference.greedy[i]);
      return {
        result,
        largest: Math.max(...differences),
        mean: differences.reduce((sum, value) => sum + value, 0) / differences.length,
        sameTokens: first === -1 ? result.greedy.length : first,
      };
    });
}

/** Float32 engines with the same weights must agree. A larger difference means that one computed another model. */
export const LARGEST_F32_DIFFERENCE = 1e-3;

export function strangers(results: BenchResults): Agreement[] {
  return agreements(results).filter(
    ({ result, largest }) => result.entrant.precision === "f32" && !(largest <= LARGEST_F32_DIFFERENCE),
  );
}
