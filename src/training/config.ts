// All settings of a training job and their defaults. The API translates `experimental_config` into these names. The
// arithmetic is in data/advantage.ts, gradient/loss.ts and gradient/optimizer.ts.

export type ImportanceSamplingLevel = "token" | "sequence" | "average" | "geometric_average";

/** Settings of the policy-gradient loss. */
export interface LossConfig {
  /** Name in the algorithm registry. */
  algorithm: string;
  /** null = the algorithm's default. */
  epsilon: number | null;
  epsilonHigh: number | null;
  importanceSamplingLevel: ImportanceSamplingLevel;
  /** Upper cap of the ratio; null = none. Like ART, it applies to tokens with a positive advantage too. */
  maxImportanceWeight: number | null;
  /** Tokens whose ratio is outside the clip interval contribute nothing. */
  maskProbRatio: boolean;
  /** Reproduces ART's masking, which clips a masked ratio of 0 back up to 1 - epsilon. */
  artExactMasking: boolean;
  /** A <- A - tau * (new - old); null = off. */
  tau: number | null;
  truncatedImportanceSampling: number | null;
  klPenaltyCoef: number;
  /** The log-probabilities that are compared with the reference. */
  klPenaltySource: "current_learner" | "sample";
}

export interface OptimizerConfig {
  learningRate: number;
  beta1: number;
  beta2: number;
  epsilon: number;
  weightDecay: number;
  /** Limit of the global gradient norm. */
  maxGradNorm: number;
}

export interface RlConfig {
  loss: LossConfig;
  optimizer: OptimizerConfig;
  /** Divides centred rewards by the standard deviation of their group. */
  scaleRewards: boolean;
  /** [-1, 1]: positive weakens negative advantages, negative weakens positive ones. */
  advantageBalance: number;
  allowTrainingWithoutLogprobs: boolean;
  precalculateLogprobs: boolean;
  /** Reference of the KL penalty: a fixed step, a lag behind the current one, or (both null) the base model. */
  klPenaltyReferenceStep: number | null;
  klPenaltyStepLag: number | null;
  /** The learning rate is multiplied by (sequences in the gradient step)^power. */
  learningRatePower: number;
  scaleLearningRateByRewardStdDev: boolean;
  /**
   * Tokens per pack of sequences. Longer sequences are left out. null = every sequence is a pack of its own, and the
   * longest is what the model allows, up to 32,768.
   */
  packedSequenceLength: number | null;
  /** Packs per gradient step; "all" = one step per job. */
  gradAccumulationSequences: number | "all";
  /** Trajectories that began more steps ago are left out; null = any age. */
  maxStepsOffPolicy: number | null;
  seed: number;
}

export interface SftConfig {
  optimizer: OptimizerConfig;
  batchSize: number;
  /** One rate per batch; null = the constant rate of the optimizer. */
  learningRates: readonly number[] | null;
  assistantTurns: "all" | "last";
  seed: number;
}

export const DEFAULT_SEED = 3407;

export const RL_DEFAULTS: RlConfig = {
  loss: {
    algorithm: "cispo",
    epsilon: null,
    epsilonHigh: null,
    importanceSamplingLevel: "token",
    maxImportanceWeight: null,
    maskProbRatio: false,
    artExactMasking: false,
    tau: null,
    truncatedImportanceSampling: null,
    klPenaltyCoef: 0,
    klPenaltySource: "current_learner",
  },
  optimizer: { learningRate: 5e-6, beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weightDecay: 0.1, maxGradNorm: 0.1 },
  scaleRewards: true,
  advantageBalance: 0,
  allowTrainingWithoutLogprobs: false,
  precalculateLogprobs: false,
  klPenaltyReferenceStep: null,
  klPenaltyStepLag: null,
  learningRatePower: 0,
  scaleLearningRateByRewardStdDev: false,
  packedSequenceLength: null,
  gradAccumulationSequences: 1,
  maxStepsOffPolicy: null,
  seed: DEFAULT_SEED,
};

export const SFT_DEFAULTS: SftConfig = {
  optimizer: { learningRate: 5e-5, beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weightDecay: 0, maxGradNorm: 1 },
  batchSize: 2,
  learningRates: null,
  assistantTurns: "all",
  seed: DEFAULT_SEED,
};
