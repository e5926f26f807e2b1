// Rotary position embeddings: the frequencies by which a layer rotates its queries and keys. parseRope reads the fields
// of config.json, and inverseFrequencies computes the numbers. The decoder applies them: angle = position * frequency,
// halves rotated as in transformers, cos and sin times `attentionFactor`. Every step is rounded to float32, because
// checkpoints were trained that way. At position 30,000, float32 and float64 frequencies already differ by 1e-3
// radians.

import { CheckpointError } from "./checkpoint-error.ts";
import type { ConfigFields } from "./config-fields.ts";

export interface RopeSpec {
  theta: number;
  /** null = plain frequencies. */
  scaling: RopeScaling | null;
  /** Factor on cos and sin; 1 unless YaRN says otherwise. */
  attentionFactor: number;
}

export type RopeScaling =
  /** All frequencies divided by `factor`. */
  | { type: "linear"; factor: number }
  /** Llama 3.1: long waves divided by `factor`, short ones kept, smooth between. */
  | {
      type: "llama3";
      factor: number;
      lowFreqFactor: number;
      highFreqFactor: number;
      originalMaxPositions: number;
    }
  /** YaRN: a linear ramp over the dimensions between divided and kept frequencies. */
  | {
      type: "yarn";
      factor: number;
      betaFast: number;
      betaSlow: number;
      originalMaxPositions: number;
      /** Round the ends of the ramp outwards to whole dimensions. */
      truncate: boolean;
    };

/** Fields of config.json or of its rotary parameters. */
export function refusePartialRotary(fields: ConfigFields): void {
  if (fields.positive("partial_rotary_factor", 1) !== 1) {
    throw fields.problem("partial_rotary_factor", "1 (rotating only a part of each head is not supported)");
  }
}

/**
 * `fields`: a rope_scaling or rope_parameters object, or null for plain RoPE with `defaultTheta`. `positions`: the model's
 * context, and the context before stretching if it is stated outside `fields`.
 */
export function parseRope(
  fields: ConfigFields | null,
  defaultTheta: number,
  positions: { max: number; original: number | null },
): RopeSpec {
  if (fields === null) return { theta: defaultTheta, scaling: null, attentionFactor: 1 };
  const theta = fields.positive("rope_theta", defaultTheta);
  refusePartialRotary(fields);
  const plain = { theta, attentionFactor: 1 };
  const original = () => positions.original ?? fields.count("original_max_position_embeddings", positions.max);
  const type = ropeType(fields);
  switch (type) {
    case "default":
      return { ...plain, scaling: null };
    case "linear":
      return { ...plain, scaling: { type, factor: fields.positive("factor") } };
    case "llama3": {
      const lowFreqFactor = fields.positive("low_freq_factor");
      const highFreqFactor = fields.positive("high_freq_factor");
      if (highFreqFactor <= lowFreqFactor) throw fields.problem("high_freq_factor", "greater than low_freq_factor");
      const originalMaxPositions = original();
      const factor = fields.positive("factor");
      return { ...plain, scaling: { type, factor, lowFreqFactor, highFreqFactor, originalMaxPositions } };
    }
    case "yarn": {
      const originalMaxPositions = original();
      const factor = fields.positive("factor", positions.max / originalMaxPositions);
      const betaFast = fields.positive("beta_fast", 32);
      const betaSlow = fields.positive("beta_slow", 1);
      const truncate = fields.flag("truncate", true);
      const scaling = { type, factor, betaFast, betaSlow, originalMaxPositions, truncate } as const;
      return { theta, scaling, attentionFactor: yarnAttentionFactor(fields, factor) };
    }
    default:
      throw new CheckpointError(
        fields.file,
        `rope_type "${type}" is not supported (supported: default, linear, llama3, yarn)`,
      );
  }
}

/** Fields that need no type to have a meaning. */
const PLAIN_FIELDS: readonly string[] = ["rope_theta", "partial_rotary_factor"];

/** Plain RoPE by default. A factor without a type is an error: ignoring it would give another model. */
function ropeType(fields: ConfigFields): string {
  const type = fields.text("rope_type", fields.text("type", ""));
  if (type !== "") return type;
  const other = fields.keys().find((key) => fields.raw(key) !== undefined && !PLAIN_FIELDS.includes(key));
  if (other !== undefined) throw fields.problem("rope_type", `a string where there is ${other}`);
  return "default";
}

/** One frequency, in radians per position, for each pair of dimensions. Length: headDim / 2. */
export function inverseFrequencies(spec: RopeSpec, headDim: number): Float64Array {
  const f32 = Math.fround;
  const plain = Float64Array.from({ length: headDim / 2 }, (_, i) =>
    f32(1 / f32(spec.theta ** f32((2 * i) / headDim))),
  );
  const scaling = spec.scaling;
  if (scaling === null) return plain;
  switch (scaling.type) {
    case "linear":
      return plain.map((frequency) => f32(frequency / f32(scaling.factor)));
    case "llama3": {
      const { lowFreqFactor, highFreqFactor, originalMaxPositions } = scaling;
      const factor = f32(scaling.factor);
      return plain.map((frequency) => {
        const wavelength = f32(f32(2 * Math.PI) / frequency);
        if (wavelength < originalMaxPositions / highFreqFactor) return frequency;
        const divided = f32(frequency / factor);
        if (wavelength > originalMaxPositions / lowFreqFactor) return divided;
        const turns = f32(originalMaxPositions / wavelength);
        const smooth = f32(f32(turns - f32(lowFreqFactor)) / f32(highFreqFactor - lowFreqFactor));
        return f32(f32(f32(f32(1 - smooth) * frequency) / factor) + f32(smooth * frequency));
      });
    }
    case "yarn": {
      const [low, high] = yarnRamp(scaling, spec.theta, headDim);
      return plain.map((frequency, i) => {
        const ramp = f32(Math.min(1, Math.max(0, f32(f32(i - f32(low)) / f32(high - low)))));
        const kept = f32(1 - ramp);
        // Computed as 1 / (factor * theta^x), in the reference's order of operations.
        const divided = f32(1 / f32(f32(scaling.factor) * f32(spec.theta ** f32((2 * i) / headDim))));
        return f32(f32(divided * f32(1 - kept)) + f32(frequency * kept));
      });
    }
    default:
      return scaling satisfies never;
  }
}

function yarnAttentionFactor(fields: ConfigFields, factor: number): number {
  const given = fields.raw("attention_factor");
  if (given !== undefined) return fields.positive("attention_factor");
  const magnitude = (weight: number) => (factor <= 1 ? 1 : 0.1 * weight * Math.log(factor) + 1);
  const mscale = fields.between("mscale", 0, 100, 0);
  const mscaleAllDim = fields.between("mscale_all_dim", 0, 100, 0);
  return mscale !== 0 && mscaleAllDim !== 0 ? magnitude(mscale) / magnitude(mscaleAllDim) : magnitude(1);
}

/** The dimension pairs between which YaRN changes from kept to divided frequencies. */
function yarnRamp(scaling: RopeScaling & { type: "yarn" }, theta: number, headDim: number): [number, number] {
  const dimension = (turns: number) =>
    (headDim * Math.log(scaling.originalMaxPositions / (turns * 2 * Math.PI))) / (2 * Math.log(theta));
  let low = dimension(scaling.betaFast);
  let high = dimension(scaling.betaSlow);
  if (scaling.truncate) {
    low = Math.floor(low);
    high = Math.ceil(high);
  }
  low = Math.max(low, 0);
  high = Math.min(high, headDim - 1);
  return [low, low === high ? high + 0.001 : high];
}
