// Everything a training job can be told, with its defaults: the meaning of `experimental_config` after the edge has
// turned wire names into these. Pure data and rules between fields; the arithmetic lives in advantage, loss and optimizer.

export type ImportanceSamplingLevel = "token" | "sequence" | "average" | "geometric_average";

/** What the policy-gradient loss reads. */
export interface LossConfig {
  /** Name in the algorithm registry. */
  algorithm: string;
  /** null = the algorithm's default. */
  epsilon: number | null;
  epsilonHigh: number | null;
  importanceSamplingLevel: ImportanceSamplingLevel;
  /** Upper cap of the ratio; null = none. Applies to all tokens, positive advantages included, as ART does. */
  maxImportanceWeight: number | null;
  /** Tokens whose ratio left the clip interval contribute nothing. */
  maskProbRatio: boolean;
  /** Reproduce ART's masking, where a masked ratio of 0 is clipped back up to 1 - epsilon. */
  artExactMasking: boolean;
  /** A <- A - tau * (new - old); null = off. */
  tau: number | null;
  truncatedImportanceSampling: number | null;
  klPenaltyCoef: number;
  /** Whose log-probabilities are compared with the reference. */
  klPenaltySource: "current_learner" | "sample";
}

export interface OptimizerConfig {
  learningRate: number;
  beta1: number;
  beta2: number;
  epsilon: number;
  weightDecay: number;
  /** Global gradient-norm clip. */
  maxGradNorm: number;
}

export interface RlConfig {
  loss: LossConfig;
  optimizer: OptimizerConfig;
  /** Divide centred rewards by the group's standard deviation. */
  scaleRewards: boolean;
  /** [-1, 1]: positive weakens negative advantages, negative weakens positive ones. */
  advantageBalance: number;
  allowTrainingWithoutLogprobs: boolean;
  precalculateLogprobs: boolean;
  /** Reference of the KL penalty: a fixed step, a lag behind the current one, or (both null) the base model. */
  klPenaltyReferenceStep: number | null;
  klPenaltyStepLag: number | null;
  /** lr x (sequences in the gradient step)^power. */
  learningRatePower: number;
  scaleLearningRateByRewardStdDev: boolean;
  /** Longest sequence that is trained; null = what the model allows, up to 32,768 tokens. */
  packedSequenceLength: number | null;
  /** Sequences per optimiser step; "all" = one step per job. */
  gradAccumulationSequences: number | "all";
  /** Trajectories older than this many steps are skipped; null = any age. */
  maxStepsOffPolicy: number | null;
  seed: number;
}

export interface SftConfig {
  optimizer: OptimizerConfig;
  batchSize: number;
  /** One rate per batch, or null for the optimiser's constant rate. */
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
