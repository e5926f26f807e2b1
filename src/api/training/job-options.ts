// Options of a training job: their schema, read and shown.
import { type Static, Type } from "typebox";
import type { JobRecord } from "../../store/tables/jobs.ts";
import { DEFAULT_SEED, RL_DEFAULTS, type RlConfig, SFT_DEFAULTS, type SftConfig } from "../../training/config.ts";
import { ALGORITHM_NAMES } from "../../training/gradient/algorithms.ts";
import { mustBeAbsent, orNull } from "../schema/body.ts";
import type { Loc } from "../schema/scalars.ts";
import { noIssues, throwIfAny } from "./validation.ts";

// Wire schemas for a job's options: ART's fields and a few of our own. null means "not given".

const { loss, optimizer } = RL_DEFAULTS;

const FromZero = Type.Number({ minimum: 0 });
const flag = (initial: boolean, description?: string) =>
  orNull(Type.Boolean(), { default: initial, ...(description === undefined ? {} : { description }) });

export const RlOptions = Type.Object(
  {
    learning_rate: orNull(FromZero, {
      default: optimizer.learningRate,
      description: "Constant within a job. Small models need 1e-4 or more.",
    }),
    loss_fn: orNull(Type.Enum([...ALGORITHM_NAMES]), { default: loss.algorithm }),
    ppo: flag(false, "Older switch for loss_fn ppo."),
    epsilon: orNull(FromZero, {
      description: "Ratios are clipped below 1 - epsilon. Default: 1 for cispo, 0.2 for ppo.",
    }),
    epsilon_high: orNull(FromZero, {
      description: "And above 1 + epsilon_high. Default: 4 for cispo, epsilon for ppo.",
    }),
    importance_sampling_level: orNull(Type.Enum(["token", "sequence", "average", "geometric_average"]), {
      default: loss.importanceSamplingLevel,
      description: "Whether a ratio is a token's, its sequence's, or between them.",
    }),
    max_negative_advantage_importance_sampling_weight: orNull(FromZero, {
      description: "Cap of all ratios; 0 turns it off.",
    }),
    mask_prob_ratio: flag(loss.maskProbRatio, "Leave out tokens whose ratio would be clipped."),
    art_exact_masking: flag(
      loss.artExactMasking,
      "Mask as ART does: a masked ratio of 0 is clipped back up to 1 - epsilon.",
    ),
    alt_k2_tau: orNull(Type.Number(), { description: "Takes tau times the log-ratio off the advantage." }),
    kimi_k2_tau: orNull(Type.Number(), { description: "Alias of alt_k2_tau." }),
    truncated_importance_sampling: orNull(FromZero, {
      description: "Cap of the weight that corrects for the sampler; 0 turns it off.",
    }),
    kl_penalty_coef: orNull(FromZero, {
      default: loss.klPenaltyCoef,
      description: "Penalty for leaving the reference: the base model, unless one of the next two fields names a step.",
    }),
    kl_penalty_reference_step: orNull(Type.Integer({ minimum: 0 }), {
      description: "If it is deleted before the job runs, the job fails.",
    }),
    kl_penalty_step_lag: orNull(Type.Integer({ minimum: 1 }), {
      description: "The step so many steps ago, or the next that exists. Excludes kl_penalty_reference_step.",
    }),
    kl_penalty_source: orNull(Type.Enum(["current_learner", "sample"]), {
      default: loss.klPenaltySource,
      description: "Whose log-probabilities are compared with the reference's.",
    }),
    kl_ref_adapter_path: mustBeAbsent(
      "paths are refused; name a step with kl_penalty_reference_step or kl_penalty_step_lag instead",
    ),
    weight_decay: orNull(FromZero, { default: optimizer.weightDecay }),
    max_grad_norm: orNull(Type.Number({ exclusiveMinimum: 0 }), {
      default: optimizer.maxGradNorm,
      description: "A large one clips nothing.",
    }),
    scale_rewards: flag(
      RL_DEFAULTS.scaleRewards,
      "Divide advantages by the standard deviation of the group's rewards.",
    ),
    normalize_advantages: orNull(Type.Boolean(), { description: "Alias of scale_rewards." }),
    advantage_balance: orNull(Type.Number({ minimum: -1, maximum: 1 }), {
      default: RL_DEFAULTS.advantageBalance,
      description: "Above 0, negative advantages shrink by this fraction; below 0, positive ones.",
    }),
    allow_training_without_logprobs: flag(
      RL_DEFAULTS.allowTrainingWithoutLogprobs,
      "Also train assistant messages and choices without log-probabilities, with a ratio of 1.",
    ),
    precalculate_logprobs: flag(
      RL_DEFAULTS.precalculateLogprobs,
      "Ratios compare with the weights that the job starts from, not with the sampler.",
    ),
    num_trajectories_learning_rate_multiplier_power: orNull(Type.Number(), {
      default: RL_DEFAULTS.learningRatePower,
      description: "Multiplies the rate by the sequences in the gradient step to this power.",
    }),
    scale_learning_rate_by_reward_std_dev: flag(
      RL_DEFAULTS.scaleLearningRateByRewardStdDev,
      "Multiplies the rate by how far the spread of rewards has shrunk since the first step, on a fitted line.",
    ),
    packed_sequence_length: orNull(Type.Integer({ minimum: 1 }), {
      description:
        "Tokens per pack of sequences, a multiple of logprob_calculation_chunk_size. Default: each sequence is a pack.",
    }),
    logprob_calculation_chunk_size: orNull(Type.Integer({ minimum: 1 }), {
      default: 1024,
      description: "No effect on the numbers.",
    }),
    grad_accumulation_sequences: orNull(Type.Union([Type.Integer({ minimum: 1 }), Type.Literal("all")]), {
      default: RL_DEFAULTS.gradAccumulationSequences,
      description: "Packs per gradient step, or sequences without packs; all: one step per job.",
    }),
    max_steps_off_policy: orNull(Type.Integer({ minimum: 0 }), {
      description: "Trajectories of older steps are left out.",
    }),
    seed: orNull(Type.Integer({ minimum: 0, maximum: 2 ** 32 - 1 }), {
      default: DEFAULT_SEED,
      description: "Of the order of the sequences.",
    }),
  },
  { title: "ExperimentalTrainingConfig" },
);

export const SftOptions = Type.Object(
  {
    batch_size: orNull(Type.Union([Type.Integer({ minimum: 1 }), Type.Literal("auto")]), {
      default: "auto",
      description: "Examples per gradient step; auto: 2.",
    }),
    learning_rate: orNull(Type.Union([FromZero, Type.Array(FromZero)]), {
      default: SFT_DEFAULTS.optimizer.learningRate,
      description: "A list has one rate per batch; later batches use its last rate.",
    }),
    assistant_turns: orNull(Type.Enum(["all", "last"]), {
      default: SFT_DEFAULTS.assistantTurns,
      description: "Which replies of an example are trained.",
    }),
  },
  { title: "SftTrainingConfig" },
);

export type RlOptions = Static<typeof RlOptions>;
export type SftOptions = Static<typeof SftOptions>;

// Converts a job's options: experimental_config to RlConfig, with ART's meanings and defaults, and config to SftConfig.
// Refuses fields that contradict each other.

/** `loc` is the path of the options. */
export function rlConfigFrom(options: RlOptions, loc: Loc): RlConfig {
  checkRlOptions(options, loc);
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

// The settings of a job as the server understood them, under the names that requests use.

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
