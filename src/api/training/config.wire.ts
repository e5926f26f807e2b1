// `experimental_config` from the wire to RlConfig: ART's names, meanings and defaults, null meaning "not given",
// contradictions refused, and a few fields of our own. Unknown fields are ignored, so that newer clients work.

import type { JsonObject } from "../../json/json-object.ts";
import { RL_DEFAULTS, type RlConfig } from "../../training/config.ts";
import { ALGORITHM_NAMES } from "../../training/gradient/algorithms/registry.ts";
import { Fields } from "./fields.ts";
import type { Issues, Loc } from "./issues.ts";

const LEVELS = ["token", "sequence", "average", "geometric_average"] as const;
const MAX_SEED = 2 ** 32 - 1;

export function rlConfigFrom(object: JsonObject | null, loc: Loc, issues: Issues): RlConfig {
  const fields = new Fields(object ?? {}, loc, issues);
  const { loss, optimizer } = RL_DEFAULTS;
  refuseAdapterPath(fields);
  return {
    loss: {
      algorithm: algorithm(fields),
      epsilon: fields.number("epsilon", { min: 0 }),
      epsilonHigh: fields.number("epsilon_high", { min: 0 }),
      importanceSamplingLevel: fields.oneOf("importance_sampling_level", LEVELS) ?? loss.importanceSamplingLevel,
      // 0 switches these off, as it does in ART
      maxImportanceWeight: fields.number("max_negative_advantage_importance_sampling_weight", { min: 0 }) || null,
      maskProbRatio: fields.flag("mask_prob_ratio") ?? loss.maskProbRatio,
      artExactMasking: fields.flag("art_exact_masking") ?? loss.artExactMasking,
      tau: same(fields, "alt_k2_tau", "kimi_k2_tau", (key) => fields.number(key)),
      truncatedImportanceSampling: fields.number("truncated_importance_sampling", { min: 0 }) || null,
      klPenaltyCoef: fields.number("kl_penalty_coef", { min: 0 }) ?? loss.klPenaltyCoef,
      klPenaltySource: fields.oneOf("kl_penalty_source", ["current_learner", "sample"]) ?? loss.klPenaltySource,
    },
    optimizer: {
      ...optimizer,
      learningRate: fields.number("learning_rate", { min: 0 }) ?? optimizer.learningRate,
      weightDecay: fields.number("weight_decay", { min: 0 }) ?? optimizer.weightDecay,
      maxGradNorm: fields.number("max_grad_norm", { above: 0 }) ?? optimizer.maxGradNorm,
    },
    scaleRewards:
      same(fields, "scale_rewards", "normalize_advantages", (key) => fields.flag(key)) ?? RL_DEFAULTS.scaleRewards,
    advantageBalance: fields.number("advantage_balance", { min: -1, max: 1 }) ?? RL_DEFAULTS.advantageBalance,
    allowTrainingWithoutLogprobs:
      fields.flag("allow_training_without_logprobs") ?? RL_DEFAULTS.allowTrainingWithoutLogprobs,
    precalculateLogprobs: fields.flag("precalculate_logprobs") ?? RL_DEFAULTS.precalculateLogprobs,
    ...klReference(fields),
    learningRatePower:
      fields.number("num_trajectories_learning_rate_multiplier_power") ?? RL_DEFAULTS.learningRatePower,
    scaleLearningRateByRewardStdDev:
      fields.flag("scale_learning_rate_by_reward_std_dev") ?? RL_DEFAULTS.scaleLearningRateByRewardStdDev,
    packedSequenceLength: packedLength(fields),
    gradAccumulationSequences: accumulation(fields),
    maxStepsOffPolicy: fields.integer("max_steps_off_policy", { min: 0 }),
    seed: fields.integer("seed", { min: 0, max: MAX_SEED }) ?? RL_DEFAULTS.seed,
  };
}

/** A path on the server's disk has no business in a request. */
function refuseAdapterPath(fields: Fields): void {
  if (fields.raw("kl_ref_adapter_path") === undefined) return;
  const instead = "name a step with kl_penalty_reference_step or kl_penalty_step_lag instead";
  fields.problem("kl_ref_adapter_path", "value_error", `Value error, paths are refused; ${instead}`);
}

/** `loss_fn` names the algorithm; `ppo` is the older switch for the same thing. */
function algorithm(fields: Fields): string {
  const name = fields.oneOf("loss_fn", ALGORITHM_NAMES);
  const ppo = fields.flag("ppo");
  if (name !== null && ppo !== null && (name === "ppo") !== ppo) {
    fields.problem("loss_fn", "value_error", `Value error, loss_fn '${name}' contradicts ppo ${ppo}`);
  }
  return name ?? (ppo ? "ppo" : RL_DEFAULTS.loss.algorithm);
}

function klReference(fields: Fields): Pick<RlConfig, "klPenaltyReferenceStep" | "klPenaltyStepLag"> {
  const step = fields.integer("kl_penalty_reference_step", { min: 0 });
  const lag = fields.integer("kl_penalty_step_lag", { min: 1 });
  if (step !== null && lag !== null) {
    const other = "kl_penalty_reference_step";
    fields.problem("kl_penalty_step_lag", "value_error", `Value error, give ${other} or kl_penalty_step_lag, not both`);
  }
  return { klPenaltyReferenceStep: step, klPenaltyStepLag: lag };
}

function packedLength(fields: Fields): number | null {
  const chunk = fields.integer("logprob_calculation_chunk_size", { min: 1 }) ?? 1024;
  const length = fields.integer("packed_sequence_length", { min: 1 });
  if (length !== null && length % Math.min(chunk, length) !== 0) {
    const rule = `a multiple of logprob_calculation_chunk_size (${chunk})`;
    fields.problem("packed_sequence_length", "value_error", `Value error, it must be ${rule}`);
  }
  return length;
}

function accumulation(fields: Fields): number | "all" {
  if (fields.raw("grad_accumulation_sequences") === "all") return "all";
  return fields.integer("grad_accumulation_sequences", { min: 1 }) ?? RL_DEFAULTS.gradAccumulationSequences;
}

/** Two names of one field: either, or both with the same value. */
function same<Value>(fields: Fields, key: string, alias: string, read: (key: string) => Value | null): Value | null {
  const [value, other] = [read(key), read(alias)];
  if (value !== null && other !== null && value !== other) {
    fields.problem(alias, "value_error", `Value error, ${alias} and ${key} are the same field and must not differ`);
  }
  return value ?? other;
}
