// Importance ratios at token, sequence or mixed level, and their derivatives with respect to the log-probabilities.
// Sequences are index ranges in the flat list of a gradient step's tokens.

import type { ImportanceSamplingLevel } from "../config.ts";

export interface Ratios {
  /** One ratio per token. */
  ratio: Float64Array;
  /** d ratio[t] / d logprob[t], the part through the token itself. */
  own: Float64Array;
  /** d ratio[t] / d mean(difference), the part through the sequence mean. */
  shared: Float64Array;
}

/** Ratios stop growing at e^50: beyond every sensible clip or cap, and its gradients still fit in a float32. */
const LARGEST_LOG_RATIO = 50;

/** Added to the number of tokens that a mean is taken over, as ART does. It shows in the ninth digit of a ratio. */
const COUNT_EPSILON = 1e-8;

/** The ratio of two probabilities whose logarithms differ by this much. */
export function ratioOf(difference: number): number {
  return Math.exp(Math.min(difference, LARGEST_LOG_RATIO));
}

/** `difference`: new - old log-probability. `starts`: first token of each sequence, then the number of tokens. */
export function importanceRatios(
  difference: Float64Array,
  starts: readonly number[],
  level: ImportanceSamplingLevel,
): Ratios {
  const size = difference.length;
  const ratio = new Float64Array(size);
  const own = new Float64Array(size);
  const shared = new Float64Array(size);
  for (let s = 0; s + 1 < starts.length; s++) {
    const [from, to] = [starts[s]!, starts[s + 1]!];
    let sum = 0;
    for (let t = from; t < to; t++) sum += difference[t]!;
    const mean = sum / (to - from + COUNT_EPSILON);
    const sequence = ratioOf(mean);
    for (let t = from; t < to; t++) {
      const token = ratioOf(difference[t]!);
      switch (level) {
        case "token":
          ratio[t] = own[t] = token;
          break;
        case "sequence":
          ratio[t] = shared[t] = sequence;
          break;
        case "average":
          ratio[t] = (token + sequence) / 2;
          own[t] = token / 2;
          shared[t] = sequence / 2;
          break;
        case "geometric_average":
          // not the root of their product, because one may be 0 while the other is huge
          ratio[t] = ratioOf((difference[t]! + mean) / 2);
          own[t] = shared[t] = ratio[t]! / 2;
          break;
        default:
          level satisfies never;
      }
    }
  }
  return { ratio, own, shared };
}

/** Adds the log-probability gradient of `dRatio` to `into`. */
export function backpropRatios(
  { own, shared }: Ratios,
  dRatio: Float64Array,
  starts: readonly number[],
  into: Float64Array,
): void {
  for (let s = 0; s + 1 < starts.length; s++) {
    const [from, to] = [starts[s]!, starts[s + 1]!];
    let throughMean = 0;
    for (let t = from; t < to; t++) throughMean += dRatio[t]! * shared[t]!;
    throughMean /= to - from + COUNT_EPSILON;
    for (let t = from; t < to; t++) into[t] = into[t]! + dRatio[t]! * own[t]! + throughMean;
  }
}
