// Converts a job's options: experimental_config to RlConfig, with ART's meanings and defaults, and config to SftConfig.
// Refuses fields that contradict each other.

import { RL_DEFAULTS, type RlConfig, SFT_DEFAULTS, type SftConfig } from "../../training/config.ts";
import type { Loc } from "../request/violations.ts";
import type { RlOptions, SftOptions } from "./config.schema.ts";
import { noIssues, throwIfAny } from "./validation.ts";

/** `loc` is the path of the options. */
export function rlConfigFrom(options: RlOptions, loc: Loc): RlConfig {
  checkRlOptions(options, loc);
  const { loss, optimizer } = RL_DEFAULTS;
  return {
    loss: {
      algorithm: options.loss_fn ?? (options.ppo ? "ppo" : loss.algorithm),
      epsilon: options.epsilon ?? null,
      epsilonHigh: options.epsilon_high ?? null,
      importanceSamplingLevel: options.importance_sampling_level ?? loss.importanceSamplingLevel,
      // 0 turns these off, as in ART
      maxImportanceWeight: options.max_negative_advantage_importance_sampling_weight || null,
      truncatedImportanceSampling: options.truncated_importance_sampling || null,
      maskProbRatio: options.mask_prob_ratio ?? loss.maskProbRatio,
      artExactMasking: options.art_exact_masking ?? loss.artExactMasking,
      tau: options.alt_k2_tau ?? options.kimi_k2_tau ?? null,
      klPenaltyCoef: options.kl_penalty_coef ?? loss.klPenaltyCoef,
      klPenaltySource: options.kl_penalty_source ?? loss.klPenaltySource,
    },
    optimizer: {
      ...optimizer,
      learningRate: options.learning_rate ?? optimizer.learningRate,
      weightDecay: options.weight_decay ?? optimizer.weightDecay,
      maxGradNorm: options.max_grad_norm ?? optimizer.maxGradNorm,
    },
    scaleRewards: options.scale_rewards ?? options.normalize_advantages ?? RL_DEFAULTS.scaleRewards,
    advantageBalance: options.advantage_balance ?? RL_DEFAULTS.advantageBalance,
    allowTrainingWithoutLogprobs: options.allow_training_without_logprobs ?? RL_DEFAULTS.allowTrainingWithoutLogprobs,
    precalculateLogprobs: options.precalculate_logprobs ?? RL_DEFAULTS.precalculateLogprobs,
    klPenaltyReferenceStep: options.kl_penalty_reference_step ?? null,
    klPenaltyStepLag: options.kl_penalty_step_lag ?? null,
    learningRatePower: options.num_trajectories_learning_rate_multiplier_power ?? RL_DEFAULTS.learningRatePower,
    scaleLearningRateByRewardStdDev:
      options.scale_learning_rate_by_reward_std_dev ?? RL_DEFAULTS.scaleLearningRateByRewardStdDev,
    packedSequenceLength: options.packed_sequence_length ?? null,
    gradAccumulationSequences: options.grad_accumulation_sequences ?? RL_DEFAULTS.gradAccumulationSequences,
    maxStepsOffPolicy: options.max_steps_off_policy ?? null,
    seed: options.seed ?? RL_DEFAULTS.seed,
  };
}

type Refuse = (field: keyof RlOptions, rule: string) => void;

function checkRlOptions(options: RlOptions, loc: Loc): void {
  const issues = noIssues();
  const refuse: Refuse = (field, rule) => issues.add([...loc, field], "value_error", `Value error, ${rule}`);
  checkSame(options, "alt_k2_tau", "kimi_k2_tau", refuse);
  checkSame(options, "scale_rewards", "normalize_advantages", refuse);
  const { loss_fn: name = null, ppo = null } = options;
  if (name !== null && ppo !== null && (name === "ppo") !== ppo) {
    refuse("loss_fn", `loss_fn '${name}' contradicts ppo ${ppo}`);
  }
  if ((options.kl_penalty_reference_step ?? null) !== null && (options.kl_penalty_step_lag ?? null) !== null) {
    refuse("kl_penalty_step_lag", "give kl_penalty_reference_step or kl_penalty_step_lag, not both");
  }
  const chunk = options.logprob_calculation_chunk_size ?? 1024;
  const length = options.packed_sequence_length ?? null;
  if (length !== null && length % Math.min(chunk, length) !== 0) {
    refuse("packed_sequence_length", `it must be a multiple of logprob_calculation_chunk_size (${chunk})`);
  }
  throwIfAny(issues);
}

/** A field with two names. Both may be given if their values agree. */
function checkSame(options: RlOptions, key: keyof RlOptions, alias: keyof RlOptions, refuse: Refuse): void {
  const [value, other] = [options[key] ?? null, options[alias] ?? null];
  if (value === null || other === null || value === other) return;
  refuse(alias, `${alias} and ${key} are the same field and must not differ`);
}

export function sftConfigFrom({ batch_size, learning_rate, assistant_turns }: SftOptions): SftConfig {
  const { optimizer } = SFT_DEFAULTS;
  const rate = typeof learning_rate === "number" ? learning_rate : optimizer.learningRate;
  const rates = Array.isArray(learning_rate) && learning_rate.length > 0 ? learning_rate : null;
  return {
    optimizer: { ...optimizer, learningRate: rate },
    batchSize: typeof batch_size === "number" ? batch_size : SFT_DEFAULTS.batchSize,
    learningRates: rates,
    assistantTurns: assistant_turns ?? SFT_DEFAULTS.assistantTurns,
    seed: SFT_DEFAULTS.seed,
  };
}
