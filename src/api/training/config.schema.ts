// Wire schemas for a job's options: ART's fields and a few of our own. null means "not given".

import { type Static, Type } from "typebox";
import { DEFAULT_SEED, RL_DEFAULTS, SFT_DEFAULTS } from "../../training/config.ts";
import { ALGORITHM_NAMES } from "../../training/gradient/algorithms/registry.ts";
import { orNull, refused } from "../request/schema-parts.ts";

const { loss, optimizer } = RL_DEFAULTS;

const FromZero = Type.Number({ minimum: 0 });
const flag = (initial: boolean, description?: string) =>
  orNull(Type.Boolean(), { default: initial, ...(description === undefined ? {} : { description }) });

export const RlOptions = Type.Object(
  {
    learning_rate: orNull(FromZero, { default: optimizer.learningRate }),
    loss_fn: orNull(Type.Enum([...ALGORITHM_NAMES]), { default: loss.algorithm }),
    ppo: flag(false, "Older switch for loss_fn ppo."),
    epsilon: orNull(FromZero, { description: "Default: 1 for cispo, 0.2 for ppo." }),
    epsilon_high: orNull(FromZero, { description: "Default: 4 for cispo, epsilon for ppo." }),
    importance_sampling_level: orNull(Type.Enum(["token", "sequence", "average", "geometric_average"]), {
      default: loss.importanceSamplingLevel,
    }),
    max_negative_advantage_importance_sampling_weight: orNull(FromZero, { description: "0 turns it off." }),
    mask_prob_ratio: flag(loss.maskProbRatio),
    art_exact_masking: flag(loss.artExactMasking),
    alt_k2_tau: orNull(Type.Number()),
    kimi_k2_tau: orNull(Type.Number(), { description: "Alias of alt_k2_tau." }),
    truncated_importance_sampling: orNull(FromZero, { description: "0 turns it off." }),
    kl_penalty_coef: orNull(FromZero, { default: loss.klPenaltyCoef }),
    kl_penalty_source: orNull(Type.Enum(["current_learner", "sample"]), { default: loss.klPenaltySource }),
    kl_penalty_reference_step: orNull(Type.Integer({ minimum: 0 })),
    kl_penalty_step_lag: orNull(Type.Integer({ minimum: 1 }), { description: "Excludes kl_penalty_reference_step." }),
    kl_ref_adapter_path: refused(
      "paths are refused; name a step with kl_penalty_reference_step or kl_penalty_step_lag instead",
    ),
    weight_decay: orNull(FromZero, { default: optimizer.weightDecay }),
    max_grad_norm: orNull(Type.Number({ exclusiveMinimum: 0 }), { default: optimizer.maxGradNorm }),
    scale_rewards: flag(RL_DEFAULTS.scaleRewards),
    normalize_advantages: orNull(Type.Boolean(), { description: "Alias of scale_rewards." }),
    advantage_balance: orNull(Type.Number({ minimum: -1, maximum: 1 }), { default: RL_DEFAULTS.advantageBalance }),
    allow_training_without_logprobs: flag(RL_DEFAULTS.allowTrainingWithoutLogprobs),
    precalculate_logprobs: flag(RL_DEFAULTS.precalculateLogprobs),
    num_trajectories_learning_rate_multiplier_power: orNull(Type.Number(), { default: RL_DEFAULTS.learningRatePower }),
    scale_learning_rate_by_reward_std_dev: flag(RL_DEFAULTS.scaleLearningRateByRewardStdDev),
    packed_sequence_length: orNull(Type.Integer({ minimum: 1 }), {
      description:
        "Tokens per pack of sequences, a multiple of logprob_calculation_chunk_size. Default: each sequence is a pack.",
    }),
    logprob_calculation_chunk_size: orNull(Type.Integer({ minimum: 1 }), { default: 1024 }),
    grad_accumulation_sequences: orNull(Type.Union([Type.Integer({ minimum: 1 }), Type.Literal("all")]), {
      default: RL_DEFAULTS.gradAccumulationSequences,
      description: "Packs per gradient step.",
    }),
    max_steps_off_policy: orNull(Type.Integer({ minimum: 0 })),
    seed: orNull(Type.Integer({ minimum: 0, maximum: 2 ** 32 - 1 }), { default: DEFAULT_SEED }),
  },
  { title: "ExperimentalTrainingConfig" },
);

export const SftOptions = Type.Object(
  {
    batch_size: orNull(Type.Union([Type.Integer({ minimum: 1 }), Type.Literal("auto")]), { default: "auto" }),
    learning_rate: orNull(Type.Union([FromZero, Type.Array(FromZero)]), {
      default: SFT_DEFAULTS.optimizer.learningRate,
      description: "A list has one rate per batch; later batches use its last rate.",
    }),
    assistant_turns: orNull(Type.Enum(["all", "last"]), { default: SFT_DEFAULTS.assistantTurns }),
  },
  { title: "SftTrainingConfig" },
);

export type RlOptions = Static<typeof RlOptions>;
export type SftOptions = Static<typeof SftOptions>;
