// Bounds of the sampling parameters. They apply to the effective values, including the model's defaults.
import { ServiceError } from "../../errors/service-error.ts";

export interface BoundedParams {
  temperature: number;
  topP: number;
  topK: number;
  minP: number;
  repetitionPenalty: number;
  frequencyPenalty: number;
  presencePenalty: number;
  minTokens: number;
}

interface Bound {
  field: keyof BoundedParams;
  wire: string;
  allowed: string;
  ok: (value: number) => boolean;
  /** Whether the error sets `param`. */
  named: boolean;
}

const BOUNDS: readonly Bound[] = [
  {
    field: "presencePenalty",
    wire: "presence_penalty",
    allowed: "in [-2, 2]",
    ok: (v) => v >= -2 && v <= 2,
    named: false,
  },
  {
    field: "frequencyPenalty",
    wire: "frequency_penalty",
    allowed: "in [-2, 2]",
    ok: (v) => v >= -2 && v <= 2,
    named: false,
  },
  { field: "repetitionPenalty", wire: "repetition_penalty", allowed: "greater than 0", ok: (v) => v > 0, named: false },
  { field: "temperature", wire: "temperature", allowed: "in [0, 2]", ok: (v) => v >= 0 && v <= 2, named: true },
  { field: "topP", wire: "top_p", allowed: "in (0, 1]", ok: (v) => v > 0 && v <= 1, named: true },
  { field: "topK", wire: "top_k", allowed: "at least 1, or 0 or -1 for off", ok: (v) => v >= -1, named: false },
  { field: "minP", wire: "min_p", allowed: "in [0, 1]", ok: (v) => v >= 0 && v <= 1, named: false },
  { field: "minTokens", wire: "min_tokens", allowed: "0 or more", ok: (v) => v >= 0, named: false },
];

export function checkSamplingBounds(params: BoundedParams): void {
  for (const bound of BOUNDS) {
    const value = params[bound.field];
    if (!bound.ok(value)) {
      const message = `${bound.wire} must be ${bound.allowed}, got ${value}.`;
      throw new ServiceError("invalid_value", message, { param: bound.named ? bound.wire : null });
    }
  }
}
