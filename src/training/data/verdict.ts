// Decides what becomes of a trajectory: trained, or left out for a stated reason. The verdicts make up the job's
// report.

import type { GiveWay } from "../../pacing/turns.ts";
import { PromptError } from "../../text/prompt-error.ts";
import type { RlConfig } from "../config.ts";
import { type TokenSequence, tokenCounts } from "./token-sequence.ts";
import { TokenMismatchError, tokeniseHistory } from "./tokenise.ts";
import { type ChatEncoder, placesOf, refusalText, type Trajectory } from "./trajectory.ts";

export type Verdict =
  | "trained"
  | "zero_advantage"
  | "no_logprobs"
  | "too_long"
  | "token_mismatch"
  | "unrenderable"
  | "stale";

export interface TrajectoryReport {
  group: number;
  trajectory: number;
  status: Verdict;
  /** Why it was left out, in whole or in part; null when all of it is trained. */
  reason: string | null;
  reward: number;
  /** After balancing and normalising over the job; 0 when not trained. */
  advantage: number;
  sequences: number;
  tokens: number;
  trainableTokens: number;
}

/** A trajectory with its verdict so far and its tokens. */
export interface Judged {
  report: TrajectoryReport;
  sequences: TokenSequence[];
  /** Within its group, before balancing and normalising. */
  rawAdvantage: number;
  retokenised: number;
}

export interface JudgeContext {
  encoder: ChatEncoder;
  config: RlConfig;
  /** The step that the job trains from. Staleness is measured against it. */
  currentStep: number;
  /** Also tokenises what will be left out, to show it. Corrupt records get a verdict instead of failing the job. */
  preview: boolean;
  /** Longest sequence that can be trained, in tokens. */
  maxTokens: number;
  giveWay: GiveWay;
}

const NO_ADVANTAGE = "its reward equals the mean of its group, so there is nothing to learn from it";
const NO_LOGPROBS = "no choice in it carries log-probabilities; sample with logprobs on";

/** Throws on a record that contradicts itself, naming group, trajectory and element. Length is checked later. */
export async function judge(
  trajectory: Trajectory,
  place: { group: number; trajectory: number },
  rawAdvantage: number,
  { encoder, config, currentStep, preview, maxTokens, giveWay }: JudgeContext,
): Promise<Judged> {
  const sequences: TokenSequence[] = [];
  let retokenised = 0;
  const verdict = (status: Verdict, reason: string | null): Judged => ({
    report: { ...place, status, reason, reward: trajectory.reward, advantage: 0, ...tokenCounts(sequences) },
    sequences,
    rawAdvantage,
    retokenised,
  });

  if (isStale(trajectory.initialPolicyVersion, currentStep, config.maxStepsOffPolicy)) {
    const limit = `too far from step ${currentStep}: max_steps_off_policy is ${config.maxStepsOffPolicy}`;
    return verdict("stale", `it began at step ${trajectory.initialPolicyVersion}, ${limit}`);
  }
  if (rawAdvantage === 0 && !preview) return verdict("zero_advantage", NO_ADVANTAGE);
  for (const [h, history] of trajectory.histories.entries()) {
    try {
      const options = { allowWithoutLogprobs: config.allowTrainingWithoutLogprobs, maxTokens, giveWay };
      const tokenised = await tokeniseHistory(history, encoder, options);
      sequences.push(...tokenised.sequences);
      retokenised += tokenised.retokenised;
    } catch (error) {
      const elements = h === 0 ? "messages_and_choices" : `additional_histories[${h - 1}].messages_and_choices`;
      const places = placesOf(history, elements);
      if (error instanceof PromptError) {
        sequences.length = 0;
        return verdict("unrenderable", refusalText(error, places));
      }
      if (!(error instanceof TokenMismatchError)) throw error;
      const message = `${places.element(error.element)}: ${error.message}`;
      if (error.corrupt && !preview) {
        throw new Error(`group ${place.group}, trajectory ${place.trajectory}, ${message}`, { cause: error });
      }
      sequences.length = 0;
      return verdict("token_mismatch", message);
    }
  }
  if (sequences.length === 0) return verdict("no_logprobs", NO_LOGPROBS);
  return rawAdvantage === 0 ? verdict("zero_advantage", NO_ADVANTAGE) : verdict("trained", null);
}

/** Whether the trajectory began more than `maxStepsOffPolicy` steps before `currentStep`. Unknown counts as fresh. */
export function isStale(initialVersion: number | null, currentStep: number, maxStepsOffPolicy: number | null): boolean {
  return maxStepsOffPolicy !== null && initialVersion !== null && initialVersion < currentStep - maxStepsOffPolicy;
}
