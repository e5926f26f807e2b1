// Bounds of the sampling parameters. They apply to the effective values, including the model's defaults.
import { ServiceError } from "../../errors/service-error.ts";
import type { SamplingParams } from "../../sampling/sampling-params.ts";

type Bounded =
  | "presencePenalty"
  | "frequencyPenalty"
  | "repetitionPenalty"
  | "temperature"
  | "topP"
  | "topK"
  | "minP"
  | "minTokens";

const BOUNDS: readonly [field: Bounded, wire: string, allowed: string, holds: (value: number) => boolean][] = [
  ["presencePenalty", "presence_penalty", "in [-2, 2]", (v) => v >= -2 && v <= 2],
  ["frequencyPenalty", "frequency_penalty", "in [-2, 2]", (v) => v >= -2 && v <= 2],
  ["repetitionPenalty", "repetition_penalty", "greater than 0", (v) => v > 0],
  ["temperature", "temperature", "in [0, 2]", (v) => v >= 0 && v <= 2],
  ["topP", "top_p", "in (0, 1]", (v) => v > 0 && v <= 1],
  ["topK", "top_k", "at least 1, or 0 or -1 for off", (v) => v >= -1],
  ["minP", "min_p", "in [0, 1]", (v) => v >= 0 && v <= 1],
  ["minTokens", "min_tokens", "0 or more", (v) => v >= 0],
];

/** The only fields that the error repeats in `param`. */
const NAMED = new Set(["temperature", "top_p"]);

export function checkSamplingBounds(params: Pick<SamplingParams, Bounded>): void {
  for (const [field, wire, allowed, holds] of BOUNDS) {
    if (holds(params[field])) continue;
    const message = `${wire} must be ${allowed}, got ${params[field]}.`;
    throw new ServiceError("invalid_value", message, { param: NAMED.has(wire) ? wire : null });
  }
}
