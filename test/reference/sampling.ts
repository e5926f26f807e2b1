// The sampling rules written the slow, obvious way: 64-bit floats, full sorts, one step after the other. Tests compare
// the fast code in src/sampling with it. The two share no code.

import type { SamplingParams } from "../../src/sampling/sampling-params.ts";
import { samplingParams } from "../support/requests.ts";

export const defaults: SamplingParams = samplingParams({
  temperature: 1,
  maxTokens: 1000,
  eosTokenId: null,
  minTokensMask: [],
  seed: 1n,
});

/** Raw logits, with -Infinity where the grammar forbids a token. */
export function referenceMask(logits: ArrayLike<number>, legal: ReadonlySet<number> | null): number[] {
  return Array.from(logits, (value, id) => (legal === null || legal.has(id) ? value : Number.NEGATIVE_INFINITY));
}

/** Everything between the grammar mask and the temperature. */
export function referenceEdits(
  masked: readonly number[],
  params: SamplingParams,
  prompt: readonly number[],
  output: readonly number[],
): number[] {
  return masked.map((raw, id) => {
    let value = raw;
    if (params.allowedTokenIds !== null && !params.allowedTokenIds.includes(id)) value = Number.NEGATIVE_INFINITY;
    for (const word of params.badWords) {
      const prefix = word.slice(0, -1);
      const tail = output.slice(output.length - prefix.length);
      if (word.at(-1) === id && output.length >= prefix.length && tail.join() === prefix.join()) {
        value = Number.NEGATIVE_INFINITY;
      }
    }
    if (output.length < params.minTokens && params.minTokensMask.includes(id)) value = Number.NEGATIVE_INFINITY;
    for (const [biased, bias] of params.logitBias) if (biased === id) value += bias;
    if (prompt.includes(id) || output.includes(id)) {
      value = value > 0 ? value / params.repetitionPenalty : value * params.repetitionPenalty;
    }
    const count = output.filter((token) => token === id).length;
    value -= params.frequencyPenalty * count;
    if (count > 0) value -= params.presencePenalty;
    return value;
  });
}

export function referenceSoftmax(values: readonly number[]): number[] {
  const max = Math.max(...values);
  const weights = values.map((value) => Math.exp(value - max));
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => weight / sum);
}

export interface Survivors {
  /** Probability of each id after truncation; 0 = dropped. */
  probabilities: number[];
  /** Ids so close to an edge that rounding may decide either way. */
  doubtful: Set<number>;
}

/** Temperature, min_p, top_k, top_p. */
export function referenceTruncate(values: readonly number[], params: SamplingParams): Survivors {
  const { temperature, minP, topK, topP } = params;
  const doubtful = new Set<number>();
  let scaled = values.map((value) => value / temperature);

  let probabilities = referenceSoftmax(scaled);
  const limit = minP * Math.max(...probabilities);
  scaled = scaled.map((value, id) => {
    if (minP > 0 && minP < 1 && Math.abs(probabilities[id]! / limit - 1) < 1e-5) doubtful.add(id);
    return probabilities[id]! < limit ? Number.NEGATIVE_INFINITY : value;
  });

  if (topK > 0 && topK < values.length) {
    const kth = [...scaled].sort((a, b) => b - a)[topK - 1]!;
    scaled = scaled.map((value) => (value < kth ? Number.NEGATIVE_INFINITY : value));
  }

  probabilities = referenceSoftmax(scaled);
  if (topP < 1) {
    // Ascending. Of equal entries the lower id counts as more likely, so it comes later.
    const ascending = [...probabilities.keys()].sort((a, b) => scaled[a]! - scaled[b]! || b - a);
    let cumulative = 0;
    for (const id of ascending.slice(0, -1)) {
      cumulative += probabilities[id]!;
      if (Math.abs(cumulative - (1 - topP)) < 1e-5) doubtful.add(id);
      if (cumulative <= 1 - topP) scaled[id] = Number.NEGATIVE_INFINITY;
    }
    probabilities = referenceSoftmax(scaled);
  }
  return { probabilities, doubtful };
}

export function referenceLogprobs(values: readonly number[]): number[] {
  const max = Math.max(...values);
  const sum = values.reduce((total, value) => total + Math.exp(value - max), 0);
  return values.map((value) => value - max - Math.log(sum));
}

/** Ids by descending value, equal ones by ascending id. */
export function referenceOrder(values: readonly number[]): number[] {
  return [...values.keys()].sort((a, b) => values[b]! - values[a]! || a - b);
}
