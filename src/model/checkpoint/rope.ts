// Rotary position embeddings: the frequencies by which a layer rotates its queries and keys. parseRope reads the fields
// of config.json, and inverseFrequencies computes the numbers. The decoder applies them: angle = position * frequency,
// halves rotated as in transformers, cos and sin times `attentionFactor`. Every step is rounded to float32, because
// checkpoints were trained that way. At position 30,000, float32 and float64 frequencies already differ by 1e-3
// radians.

import { CheckpointError } from "./checkpoint-file.ts";
import type { ConfigFields } from "./config-fields.ts";

export interface RopeSpec {
  theta: number;
  /** null = plain frequencies. */
  scaling: RopeScaling | null;
  /** Factor on cos and sin; 1 unless YaRN or LongRoPE says otherwise. */
  attentionFactor: number;
  /** How many dimensions of each head rotate, the first ones; absent = all. Even. */
  rotated?: number;
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
    }
  /** LongRoPE: each frequency divided by a factor of its own, one list for short and one for long contexts. */
  | {
      type: "longrope";
      shortFactors: readonly number[];
      longFactors: readonly number[];
      /** The longest context that uses the short factors. */
      originalMaxPositions: number;
    };

/** `partial_rotary_factor` of config.json or of its rotary parameters. `supported`: whether the family knows it. */
export function partialRotary(fields: ConfigFields, supported: boolean, fallback = 1): number {
  const share = fields.positive("partial_rotary_factor", fallback);
  if (share !== 1 && !supported) {
    throw fields.problem("partial_rotary_factor", "1 (models of this family rotate whole heads)");
  }
  if (share > 1) throw fields.problem("partial_rotary_factor", "at most 1");
  return share;
}

export interface RopeContext {
  /** The model's context. */
  max: number;
  /** The context before stretching, if it is stated outside the rotary parameters. */
  original: number | null;
  headDim: number;
  /** Share of each head that rotates, if it is stated outside the rotary parameters; else 1. */
  share: number;
  /** Whether the family knows partial rotation. */
  partial: boolean;
}

/** `fields`: a rope_scaling or rope_parameters object, or null for plain RoPE with `defaultTheta`. */
export function parseRope(fields: ConfigFields | null, defaultTheta: number, context: RopeContext): RopeSpec {
  const plain = { theta: defaultTheta, scaling: null, attentionFactor: 1 };
  const spec = fields === null ? plain : parseScaling(fields, defaultTheta, context);
  const share = fields === null ? context.share : partialRotary(fields, context.partial, context.share);
  return share === 1 ? spec : { ...spec, rotated: Math.floor(context.headDim * share) };
}

function parseScaling(fields: ConfigFields, defaultTheta: number, positions: RopeContext): RopeSpec {
  const theta = fields.positive("rope_theta", defaultTheta);
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
    case "longrope":
      return { theta, ...longRope(fields, positions, original()) };
    default:
      throw new CheckpointError(
        fields.file,
        `rope_type "${type}" is not supported (supported: default, linear, llama3, yarn, longrope)`,
      );
  }
}

function longRope(
  fields: ConfigFields,
  { max, headDim, share }: RopeContext,
  originalMaxPositions: number,
): Pick<RopeSpec, "scaling" | "attentionFactor"> {
  for (const key of ["short_mscale", "long_mscale"]) {
    if (fields.raw(key) !== undefined) throw fields.problem(key, "absent (it is not supported)");
  }
  const pairs = Math.floor(headDim * partialRotary(fields, true, share)) / 2;
  const shortFactors = fields.positives("short_factor", pairs);
  const longFactors = fields.positives("long_factor", pairs);
  const factor = fields.positive("factor", max / originalMaxPositions);
  const grown = factor <= 1 ? 1 : Math.sqrt(1 + Math.log(factor) / Math.log(originalMaxPositions));
  return {
    scaling: { type: "longrope", shortFactors, longFactors, originalMaxPositions },
    attentionFactor: fields.positive("attention_factor", grown),
  };
}

/** The longest context that these layers serve with the short factors of LongRoPE; null = they have none. */
export function shortContext(layers: readonly { rope: RopeSpec | null }[]): number | null {
  const scaling = layers.find(({ rope }) => rope?.scaling?.type === "longrope")?.rope?.scaling;
  return scaling?.type === "longrope" ? scaling.originalMaxPositions : null;
}

/**
 * Whether a context of this many positions takes the long factors. Cached keys are rotated once and serve every
 * sequence that begins alike, so the context decides for all positions together, as in vLLM.
 */
export function takesLongFactors({ scaling }: RopeSpec, context: number): boolean {
  return scaling?.type === "longrope" && context > scaling.originalMaxPositions;
}

/** Fields that need no type to have a meaning. */
const PLAIN_FIELDS: readonly string[] = ["rope_theta", "partial_rotary_factor"];

/** Plain RoPE by default. A factor without a type is an error: ignoring it would give another model. */
function ropeType(fields: ConfigFields): string {
  const type = fields.text("rope_type", fields.text("type", ""));
  // Older names of LongRoPE.
  if (type === "su" || (type === "yarn" && fields.raw("short_factor") !== undefined)) return "longrope";
  if (type !== "") return type;
  const other = fields.keys().find((key) => fields.raw(key) !== undefined && !PLAIN_FIELDS.includes(key));
  if (other !== undefined) throw fields.problem("rope_type", `a string where there is ${other}`);
  return "default";
}

/** One frequency, in radians per position, for each pair of dimensions that rotates. `long`: see takesLongFactors. */
export function inverseFrequencies(spec: RopeSpec, headSize: number, long = false): Float64Array {
  const f32 = Math.fround;
  const headDim = spec.rotated ?? headSize;
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
    case "longrope": {
      const factors = long ? scaling.longFactors : scaling.shortFactors;
      return plain.map((_, i) => f32(1 / f32(f32(factors[i]!) * f32(spec.theta ** f32((2 * i) / headDim)))));
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
