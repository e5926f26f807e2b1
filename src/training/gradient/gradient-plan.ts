// Plans the gradient steps of a job: which sequences each one takes, and its learning rate.

import type { RlConfig, SftConfig } from "../config.ts";
import type { GradientStepPlan } from "../contract.ts";
import { TrainingError } from "../training-error.ts";
import { sequenceCountMultiplier } from "./learning-rate.ts";

/** `multiplier`: factor for the learning rate from the history of rewards. Throws when a rate is not finite. */
export function planRl(sequences: number, config: RlConfig, multiplier: number): GradientStepPlan[] {
  const size = config.gradAccumulationSequences === "all" ? Math.max(1, sequences) : config.gradAccumulationSequences;
  return ranges(sequences, size).map(({ from, to }) => ({
    from,
    to,
    learningRate: learningRate(to - from, config, multiplier),
  }));
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

function ranges(total: number, size: number): { from: number; to: number }[] {
  const result: { from: number; to: number }[] = [];
  for (let from = 0; from < total; from += size) result.push({ from, to: Math.min(total, from + size) });
  return result;
}
