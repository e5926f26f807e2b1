// The settings of a job as the server understood them, under the names that requests use.

import type { JobRecord } from "../../store/tables/jobs.ts";
import type { RlConfig, SftConfig } from "../../training/config.ts";
import type { RlOptions, SftOptions } from "./config.schema.ts";

export function presentConfig({ kind, config }: Pick<JobRecord, "kind" | "config">): RlOptions | SftOptions {
  const parsed: unknown = JSON.parse(config);
  return kind === "sft" ? sftOptions(parsed as SftConfig) : rlOptions(parsed as RlConfig);
}

/** What rlConfigFrom turns into the same settings. */
export function rlOptions({ loss, optimizer, ...config }: RlConfig): RlOptions {
  return {
    learning_rate: optimizer.learningRate,
    weight_decay: optimizer.weightDecay,
    max_grad_norm: optimizer.maxGradNorm,
    loss_fn: loss.algorithm,
    epsilon: loss.epsilon,
    epsilon_high: loss.epsilonHigh,
    importance_sampling_level: loss.importanceSamplingLevel,
    max_negative_advantage_importance_sampling_weight: loss.maxImportanceWeight,
    mask_prob_ratio: loss.maskProbRatio,
    art_exact_masking: loss.artExactMasking,
    alt_k2_tau: loss.tau,
    truncated_importance_sampling: loss.truncatedImportanceSampling,
    kl_penalty_coef: loss.klPenaltyCoef,
    kl_penalty_source: loss.klPenaltySource,
    kl_penalty_reference_step: config.klPenaltyReferenceStep,
    kl_penalty_step_lag: config.klPenaltyStepLag,
    scale_rewards: config.scaleRewards,
    advantage_balance: config.advantageBalance,
    allow_training_without_logprobs: config.allowTrainingWithoutLogprobs,
    precalculate_logprobs: config.precalculateLogprobs,
    num_trajectories_learning_rate_multiplier_power: config.learningRatePower,
    scale_learning_rate_by_reward_std_dev: config.scaleLearningRateByRewardStdDev,
    packed_sequence_length: config.packedSequenceLength,
    grad_accumulation_sequences: config.gradAccumulationSequences,
    max_steps_off_policy: config.maxStepsOffPolicy,
    seed: config.seed,
  };
}

/** What sftConfigFrom turns into the same settings. */
export function sftOptions({ optimizer, batchSize, learningRates, assistantTurns }: SftConfig): SftOptions {
  return {
    batch_size: batchSize,
    learning_rate: learningRates === null ? optimizer.learningRate : [...learningRates],
    assistant_turns: assistantTurns,
  };
}
