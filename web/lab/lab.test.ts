import { describe, expect, it } from "vitest";
import type { GroupRow } from "../jobs/records.ts";
import { changed, lossConfig } from "./knobs.ts";
import { labFrom, labQuery } from "./lab-state.ts";
import { signalsOf } from "./signals.ts";
import { stepTokensOf } from "./token-loss.ts";

const JOB = {
  ...{ loss_fn: "cispo", epsilon: null, epsilon_high: null, importance_sampling_level: "token", alt_k2_tau: null },
  ...{ kl_penalty_coef: 0, kl_penalty_source: "current_learner", scale_rewards: true, advantage_balance: 0 },
  ...{ mask_prob_ratio: false, art_exact_masking: false, truncated_importance_sampling: null },
  ...{ max_negative_advantage_importance_sampling_weight: 0, learning_rate: 1e-4 },
};

describe("settings", () => {
  it("change by what the address says, and only where that makes sense", () => {
    expect(changed(JOB, { epsilon: "0.2", loss_fn: "ppo", mask_prob_ratio: "true", kl_penalty_coef: "" })).toEqual({
      ...JOB,
      ...{ epsilon: 0.2, loss_fn: "ppo", mask_prob_ratio: true },
    });
    expect(changed({ ...JOB, epsilon: 0.2 }, { epsilon: "", loss_fn: "none", advantage_balance: "x" })).toEqual(JOB);
  });

  it("are those of the trainer's code, where 0 turns a cap off", () => {
    expect(lossConfig(JOB)).toEqual({
      ...{ algorithm: "cispo", epsilon: null, epsilonHigh: null, importanceSamplingLevel: "token", tau: null },
      ...{ maxImportanceWeight: null, truncatedImportanceSampling: null, maskProbRatio: false, artExactMasking: false },
      ...{ klPenaltyCoef: 0, klPenaltySource: "current_learner" },
    });
  });

  it("survive the address", () => {
    const state = labFrom("at=2.5&colour=ratio&epsilon=0.1&r=2.5:-0.75&r=0.1:1e-7&r=broken&other=1");
    expect(state).toEqual({
      ...{ group: 2, trajectory: 5, colour: "ratio", changes: { epsilon: "0.1" } },
      rewards: { "2.5": -0.75, "0.1": 1e-7 },
    });
    expect(labFrom(labQuery(state))).toEqual(state);
    expect(labFrom("at=x")).toMatchObject({ group: 0, trajectory: 0, colour: "gradient", changes: {}, rewards: {} });
  });
});

describe("advantages", () => {
  const row = (group: number, rewards: number[], statuses: string[], trainable_tokens: number) =>
    ({
      ...{ group, rewards },
      trajectories: rewards.map((reward, trajectory) => ({
        ...{ trajectory, reward, status: statuses[trajectory] },
        trainable_tokens: statuses[trajectory] === "trained" ? trainable_tokens : 0,
      })),
    }) as unknown as GroupRow;
  const rows = [
    row(0, [1, 0], ["trained", "trained"], 10),
    row(1, [1, 1, 1], ["zero_advantage", "zero_advantage", "too_long"], 0),
  ];

  it("are 0 for what is not trained, whatever its reward", () => {
    const { of, tokens, isSameSet, uncounted } = signalsOf(rows, JOB, {}, new Map());
    expect([tokens, isSameSet, uncounted]).toEqual([20, true, 0]);
    expect([...of.values()].map(({ advantage }) => advantage)).toEqual([1, -1, 0, 0, 0]);
  });

  it("follow a changed reward, and say whose tokens are missing", () => {
    const bare = signalsOf(rows, JOB, { "1.0": 0 }, new Map());
    expect([bare.uncounted, bare.isSameSet]).toEqual([2, false]);
    const counts = new Map([
      ["1.0", 4],
      ["1.1", 6],
    ]);
    const { of, tokens, uncounted } = signalsOf(rows, JOB, { "1.0": 0 }, counts);
    expect([tokens, uncounted]).toEqual([30, 0]);
    expect([of.get("1.0")!.isTrained, of.get("1.2")!.isTrained]).toEqual([true, false]);
    expect(of.get("1.0")!.advantage).toBeLessThan(0);
  });

  it("are divided by the tokens of a gradient step, if those can be known", () => {
    const sequence = {
      ...{ tokens: [1, 2, 3], token_strings: [], mask: [0, 1, 1] as (0 | 1)[], logprobs: [], advantages: [] },
      ...{ gradient_step: 1, gradient_step_tokens: 9 },
    };
    const plan = (grad_accumulation_sequences: unknown, packed_sequence_length: number | null = null) => ({
      ...{ grad_accumulation_sequences, packed_sequence_length },
    });
    const same = { tokens: 30, isSameSet: true };
    expect(stepTokensOf(sequence, plan(1), same)).toEqual({ tokens: 2, isExact: true });
    expect(stepTokensOf(sequence, plan("all"), same)).toEqual({ tokens: 30, isExact: true });
    expect(stepTokensOf(sequence, plan(4), same)).toEqual({ tokens: 9, isExact: true });
    expect(stepTokensOf(sequence, plan(4), { ...same, isSameSet: false })).toEqual({ tokens: 9, isExact: false });
  });
});
