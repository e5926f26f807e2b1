// The settings of a job that its loss depends on: what they are called in requests, what they mean, and how the trainer's own
// code calls them.
import { ALGORITHM_NAMES } from "../../src/training/gradient/algorithms.ts";
import type { policyLoss } from "../../src/training/gradient/loss.ts";

type LossConfig = Parameters<typeof policyLoss>[1];

/** Settings under the names of requests, as the server understood them. */
export type Config = Readonly<Record<string, unknown>>;
/** What was changed: names and values as they stand in the address. An empty value is null. */
export type Changes = Readonly<Record<string, string>>;

interface KnobText {
  name: string;
  what: string;
}
interface ChoiceKnob extends KnobText {
  values: readonly string[];
}
interface NumberKnob extends KnobText {
  /** Where the slider ends; numbers beyond can be typed. */
  least: number;
  most: number;
  step: number;
}
export type Knob = KnobText | ChoiceKnob | NumberKnob;

export const KNOBS: readonly Knob[] = [
  { name: "loss_fn", what: "the algorithm", values: ALGORITHM_NAMES },
  {
    name: "epsilon",
    what: "ratios are clipped below 1 − ε; empty: the algorithm's own",
    least: 0,
    most: 1,
    step: 0.01,
  },
  {
    name: "epsilon_high",
    what: "ratios are clipped above 1 + this; empty: the algorithm's own",
    least: 0,
    most: 5,
    step: 0.05,
  },
  {
    name: "importance_sampling_level",
    what: "ratios of tokens, of whole sequences, or of both",
    values: ["token", "sequence", "average", "geometric_average"],
  },
  { name: "mask_prob_ratio", what: "tokens outside the clip interval contribute nothing" },
  { name: "art_exact_masking", what: "a masked ratio is clipped back up, as in ART" },
  {
    name: "max_negative_advantage_importance_sampling_weight",
    what: "largest ratio; empty: none",
    least: 0,
    most: 10,
    step: 0.1,
  },
  {
    name: "truncated_importance_sampling",
    what: "largest weight of a token; empty: off",
    least: 0,
    most: 10,
    step: 0.1,
  },
  {
    name: "alt_k2_tau",
    what: "the advantage falls by this × (new − old log-probability)",
    least: 0,
    most: 1,
    step: 0.01,
  },
  {
    name: "kl_penalty_coef",
    what: "the advantage falls where a token left the reference",
    least: 0,
    most: 1,
    step: 0.01,
  },
  { name: "kl_penalty_source", what: "what is compared with the reference", values: ["current_learner", "sample"] },
  { name: "scale_rewards", what: "rewards are divided by the spread of their group" },
  { name: "advantage_balance", what: "above 0 weakens punishment, below 0 praise", least: -1, most: 1, step: 0.05 },
];

const NEVER_NULL: ReadonlySet<string> = new Set(["kl_penalty_coef", "advantage_balance"]);

/** The settings with the changes. What the address says wrongly is left as it was. */
export function changed(config: Config, changes: Changes): Config {
  const next: Record<string, unknown> = { ...config };
  for (const knob of KNOBS) {
    const text = changes[knob.name];
    if (text === undefined) continue;
    if ("values" in knob) next[knob.name] = knob.values.includes(text) ? text : next[knob.name];
    else if (!("least" in knob)) next[knob.name] = text === "true";
    else if (text === "") next[knob.name] = NEVER_NULL.has(knob.name) ? 0 : null;
    else if (Number.isFinite(Number(text))) next[knob.name] = Number(text);
  }
  return next;
}

/** The same settings as the trainer's code takes them. */
export function lossConfig(config: Config): LossConfig {
  const number = (name: string) => (config[name] as number | null | undefined) ?? null;
  return {
    algorithm: String(config.loss_fn),
    epsilon: number("epsilon"),
    epsilonHigh: number("epsilon_high"),
    importanceSamplingLevel: config.importance_sampling_level as LossConfig["importanceSamplingLevel"],
    // 0 turns these off
    maxImportanceWeight: number("max_negative_advantage_importance_sampling_weight") || null,
    truncatedImportanceSampling: number("truncated_importance_sampling") || null,
    maskProbRatio: config.mask_prob_ratio === true,
    artExactMasking: config.art_exact_masking === true,
    tau: number("alt_k2_tau"),
    klPenaltyCoef: number("kl_penalty_coef") ?? 0,
    klPenaltySource: config.kl_penalty_source as LossConfig["klPenaltySource"],
  };
}
