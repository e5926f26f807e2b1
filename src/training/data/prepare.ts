// Prepares trajectory groups for the trainer: token sequences with advantages and weights, and a verdict for every
// trajectory. It runs beside live requests, so it takes one group at a time and lets the event loop run in between.

import { givingWay } from "../../pacing/turns.ts";
import type { RlConfig } from "../config.ts";
import { seededRandom, shuffled } from "../random.ts";
import { groupAdvantages, mean, tokenSignals } from "./advantage.ts";
import type { ScoredGroup } from "./group-metrics.ts";
import {
  type LengthLimit,
  type LengthLimits,
  lengthLimit,
  partlyTooLong,
  type TokenSequence,
  tokenCounts,
} from "./token-sequence.ts";
import type { TrajectoryGroup } from "./trajectory.ts";
import { type JudgeContext, type Judged, judge, type TrajectoryReport, type Verdict } from "./verdict.ts";

export interface PreparedSequence extends TokenSequence {
  group: number;
  trajectory: number;
  advantage: number;
  weight: number;
}

export interface PreparedJob {
  /** In training order. */
  sequences: PreparedSequence[];
  report: TrajectoryReport[];
  /** Sequences of each trajectory of the report, trained or not. */
  tokenised: TokenSequence[][];
  groups: ScoredGroup[];
  metrics: Record<string, number>;
}

export interface PrepareContext extends Omit<JudgeContext, "maxTokens" | "giveWay">, LengthLimits {
  signal?: AbortSignal;
}

/** In tokens. A job can ask for more. */
const LONGEST_SEQUENCE = 32_768;

export async function prepareJob(
  groups: AsyncIterable<TrajectoryGroup> | Iterable<TrajectoryGroup>,
  context: PrepareContext,
): Promise<PreparedJob> {
  const judged: Judged[] = [];
  const scored: ScoredGroup[] = [];
  const ages: number[] = [];
  const { config, maxSequenceLength, signal } = context;
  const giveWay = givingWay(signal);
  const pack = config.packedSequenceLength;
  const limit =
    pack === null
      ? lengthLimit(Math.min(LONGEST_SEQUENCE, maxSequenceLength), context)
      : lengthLimit(pack, context, "the job's packed_sequence_length");
  const judging: JudgeContext = { ...context, maxTokens: limit.tokens, giveWay };
  for await (const { trajectories, exceptions } of groups) {
    const group = scored.length;
    scored.push({ trajectories: trajectories.map(({ reward }) => ({ reward })), exceptions });
    const rewards = trajectories.map(({ reward }) => reward);
    const advantages = groupAdvantages(rewards, config.scaleRewards);
    for (const [i, trajectory] of trajectories.entries()) {
      await giveWay();
      judged.push(await judge(trajectory, { group, trajectory: i }, advantages[i]!, judging));
      if (trajectory.initialPolicyVersion !== null) ages.push(context.currentStep - trajectory.initialPolicyVersion);
    }
  }
  dropTooLong(judged, limit);
  if (!config.allowTrainingWithoutLogprobs) dropUnobserved(judged);
  const dropped = (status: Verdict) => judged.filter(({ report }) => report.status === status).length;
  return {
    sequences: withSignals(judged, config),
    report: judged.map(({ report }) => report),
    tokenised: judged.map(({ sequences }) => sequences),
    groups: scored,
    metrics: {
      num_dropped_too_long: dropped("too_long"),
      num_dropped_zero_adv: dropped("zero_advantage"),
      num_dropped_no_logprobs: dropped("no_logprobs"),
      num_dropped_token_mismatch: dropped("token_mismatch"),
      num_dropped_unrenderable: dropped("unrenderable"),
      num_dropped_stale: dropped("stale"),
      num_retokenised: judged.reduce((sum, { retokenised }) => sum + retokenised, 0),
      steps_off_policy: mean(ages),
    },
  };
}

/** Leaves out sequences that are too long; they are never cut. A trajectory that loses all of them is too long. */
function dropTooLong(judged: Judged[], limit: LengthLimit): void {
  for (const entry of judged) {
    const { report, sequences } = entry;
    if (report.status !== "trained") continue;
    const fitting = sequences.filter(({ ids }) => ids.length <= limit.tokens);
    if (fitting.length === sequences.length) continue;
    report.reason = partlyTooLong(sequences.length, fitting.length, limit);
    if (fitting.length === 0) report.status = "too_long";
    else {
      entry.sequences = fitting;
      Object.assign(report, tokenCounts(fitting));
    }
  }
}

const UNOBSERVED =
  "its replies had to be tokenised from their text, and no trainable token of the job has a log-probability; " +
  "send token ids, or set allow_training_without_logprobs";

/** A job without any old log-probability trains nothing. Beside replies that have them, others get a ratio of 1. */
function dropUnobserved(judged: Judged[]): void {
  const trained = judged.filter(({ report }) => report.status === "trained");
  if (trained.some(({ sequences }) => sequences.some(isObserved))) return;
  for (const { report } of trained) Object.assign(report, { status: "no_logprobs", reason: UNOBSERVED });
}

function isObserved({ mask, oldLogprobs }: TokenSequence): boolean {
  return mask.some((bit, i) => bit === 1 && !Number.isNaN(oldLogprobs[i]));
}

/** Normalises over what will be trained, then puts the sequences in training order. */
function withSignals(judged: readonly Judged[], config: RlConfig): PreparedSequence[] {
  const trained = judged.filter(({ report }) => report.status === "trained");
  const signals = tokenSignals(
    trained.map(({ report, rawAdvantage }) => ({ advantage: rawAdvantage, trainableTokens: report.trainableTokens })),
    config.advantageBalance,
  );
  const prepared = trained.flatMap(({ report, sequences }, i) => {
    const { advantage, weight } = signals[i]!;
    report.advantage = advantage;
    const { group, trajectory } = report;
    return sequences.map((sequence) => ({ ...sequence, group, trajectory, advantage, weight }));
  });
  const random = seededRandom(config.seed);
  const alone = config.gradAccumulationSequences === 1 && config.packedSequenceLength === null;
  if (alone) return shuffled(prepared, random);
  // keeps a group together, so that its sequences share their prompt in a gradient step
  const groups = new Map<number, PreparedSequence[]>();
  for (const sequence of prepared) {
    const members = groups.get(sequence.group);
    if (members) members.push(sequence);
    else groups.set(sequence.group, [sequence]);
  }
  return shuffled([...groups.values()], random).flatMap((members) => shuffled(members, random));
}
