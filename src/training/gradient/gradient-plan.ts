// Plans the gradient steps of a job: which sequences each one takes, and its learning rate.

import type { RlConfig, SftConfig } from "../config.ts";
import type { GradientStepPlan } from "../contract.ts";
import { mean } from "../data/advantage.ts";
import { TrainingError } from "../training-error.ts";

// Two optional multipliers of the learning rate.

/** n^power for a gradient step with n sequences. */
export function sequenceCountMultiplier(sequences: number, power: number): number {
  return power === 0 ? 1 : Math.max(1, sequences) ** power;
}

/**
 * How far the spread of rewards has shrunk: a straight line is fitted to the history, and its value at the last step
 * (at least 0) is divided by its intercept. 1 with fewer than two points or an intercept that is not positive.
 */
export function rewardSpreadMultiplier(history: readonly { step: number; rewardStdDev: number }[]): number {
  if (history.length < 2) return 1;
  const meanStep = mean(history.map(({ step }) => step));
  const meanSpread = mean(history.map(({ rewardStdDev }) => rewardStdDev));
  let covariance = 0;
  let variance = 0;
  for (const { step, rewardStdDev } of history) {
    covariance += (step - meanStep) * (rewardStdDev - meanSpread);
    variance += (step - meanStep) ** 2;
  }
  if (variance === 0) return 1;
  const slope = covariance / variance;
  const intercept = meanSpread - slope * meanStep;
  const last = Math.max(...history.map(({ step }) => step));
  const fitted = Math.max(0, intercept + slope * last);
  return intercept > 0 ? fitted / intercept : 1;
}

type Sequences = readonly Readonly<{ ids: readonly number[] }>[];

/** From `from` up to, but not including, `to`. */
interface Range {
  from: number;
  to: number;
}

/**
 * `sequences`: in training order. `multiplier`: factor for the learning rate from the history of rewards. Throws when a
 * rate is not finite.
 */
export function planRl(sequences: Sequences, config: RlConfig, multiplier: number): GradientStepPlan[] {
  const packs = packsOf(sequences, config.packedSequenceLength);
  const size =
    config.gradAccumulationSequences === "all" ? Math.max(1, packs.length) : config.gradAccumulationSequences;
  return ranges(packs.length, size).map((step) => {
    const [from, to] = [packs[step.from]!.from, packs[step.to - 1]!.to];
    return { from, to, learningRate: learningRate(to - from, config, multiplier) };
  });
}

/**
 * Fills packs with sequences, one after the other, up to `length` tokens each; null = one sequence per pack. A prompt
 * counts for every sequence that begins with it: a client can add up what it sent, and both trainers get the same plan
 * whatever they compute only once. A longer sequence is alone; prepare.ts has left it out before.
 */
function packsOf(sequences: Sequences, length: number | null): Range[] {
  if (length === null) return ranges(sequences.length, 1);
  const packs: Range[] = [];
  let room = 0;
  for (const [i, { ids }] of sequences.entries()) {
    const pack = packs.at(-1);
    if (pack === undefined || ids.length > room) {
      packs.push({ from: i, to: i + 1 });
      room = length;
    } else pack.to = i + 1;
    room -= ids.length;
  }
  return packs;
}

function learningRate(sequences: number, { optimizer, learningRatePower }: RlConfig, multiplier: number): number {
  const rate = optimizer.learningRate * multiplier * sequenceCountMultiplier(sequences, learningRatePower);
  if (Number.isFinite(rate)) return rate;
  const power = learningRatePower;
  throw new TrainingError("learning_rate_overflow", { sequences, rate, learningRate: optimizer.learningRate, power });
}

/** Plans batches of examples. `exampleOf`: the example of each sequence; an example is never split. */
export function planSft(exampleOf: readonly number[], config: SftConfig): GradientStepPlan[] {
  const plan: GradientStepPlan[] = [];
  let from = 0;
  while (from < exampleOf.length) {
    const examples = new Set<number>();
    let to = from;
    while (to < exampleOf.length && (examples.size < config.batchSize || examples.has(exampleOf[to]!))) {
      examples.add(exampleOf[to]!);
      to++;
    }
    const rates = config.learningRates;
    const learningRate = rates ? rates[Math.min(plan.length, rates.length - 1)]! : config.optimizer.learningRate;
    plan.push({ from, to, learningRate });
    from = to;
  }
  return plan;
}

function ranges(total: number, size: number): Range[] {
  const result: Range[] = [];
  for (let from = 0; from < total; from += size) result.push({ from, to: Math.min(total, from + size) });
  return result;
}
