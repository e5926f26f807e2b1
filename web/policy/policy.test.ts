import { expect, it } from "vitest";
import type { TrainableModel } from "../../src/client/types.ts";
import { healthOf } from "./health.ts";
import { type JobSummary, jobWords, matches, timeLeft, type Verdicts, verdictWords } from "./rows.ts";

it("says in a few words how a job stands", () => {
  const now = Date.parse("2026-11-17T12:00:00Z");
  const job = (part: Partial<JobSummary>) =>
    jobWords({ updated_at: "2026-11-17T11:57:00Z", progress: null, error_message: null, ...part } as JobSummary, now)
      .text;
  expect(job({ status: "RUNNING", progress: 0.61 })).toBe("● running 61 %");
  expect(job({ status: "COMPLETED" })).toBe("✓ 3 min ago");
  expect(job({ status: "FAILED", error_message: "disk full" })).toBe("✗ failed: disk full");
  const totals = {
    groups: 2,
    trainable_groups: 1,
    trajectories: 9,
    trained: 5,
    by_status: { trained: 5, too_long: 0, zero_advantage: 4 },
  };
  expect(verdictWords(totals, "COMPLETED")).toBe("5 trained · 4 zero_advantage");
  expect(verdictWords(totals, "RUNNING")).toBe("5 to train · 4 zero_advantage");
  expect(verdictWords(totals, "CANCELLED")).toBe("5 not trained · 4 zero_advantage");
});

it("tells how long a job takes if it goes on as it went", () => {
  const start = "2026-01-01T00:00:00Z";
  const job = { status: "RUNNING", training_start: start, gradient_steps: { done: 0, total: 40 } } as const;
  const left = (part: Partial<Parameters<typeof timeLeft>[0]>, done: number) =>
    timeLeft({ ...job, ...part }, done, Date.parse(start) + 5000);
  expect([left({}, 10), left({}, 40), left({}, 0)]).toEqual([15_000, 0, null]);
  expect([left({ status: "COMPLETED" }, 40), left({ gradient_steps: null }, 1)]).toEqual([null, null]);
});

it("filters by every word", () => {
  const row = { name: "my-agent", project: "demo", base_model: "flywheel-mini" } as TrainableModel;
  const found = (filter: string, note?: { tags: string[]; text: string }) => matches(row, note, filter);
  expect([found(""), found("DEMO agent"), found("demo other")]).toEqual([true, true, false]);
  const note = { tags: ["sweep-3"], text: "the Best one" };
  expect([found("sweep-3 best", note), found("sweep-4", note)]).toEqual([true, false]);
});

it("reads the curves", () => {
  const texts = (columns: Record<string, (number | null)[]>, totals: Verdicts | null = null) =>
    healthOf(columns, totals).map(({ mood, text, meaning }) => {
      expect(meaning).toMatch(/^[A-Z].*\.$/);
      return `${mood} ${text}`;
    });
  expect(texts({ "train/reward": [0, 0.1, 0.2, 0.8, 0.9, 1] })).toEqual(["good reward rising, now 1"]);
  expect(texts({ "train/reward": [1, 0.9, null, 0.2, 0.1, 0] })[0]).toContain("bad reward falling");
  // A rollout may equal the mean of a group that is not all alike, so rollouts say nothing about groups.
  const alike = (groups: number, trainable_groups: number | null) =>
    texts({}, { groups, trainable_groups, trajectories: 9, trained: 2, by_status: { zero_advantage: 7 } });
  expect([alike(4, 2), alike(4, 3)]).toEqual([["warn 50 % of groups all alike"], ["good 25 % of groups all alike"]]);
  expect([alike(0, 0), alike(4, null)]).toEqual([[], []]);
  expect(texts({ ratio_mean: [1.01] })).toEqual(["good ratios 1.01"]);
  expect(texts({ kl_old_new_k3: [0.001, 0.001, 0.002, 0.5] })[0]).toContain("it jumped");
  expect(texts({ entropy: [2, 1, 0.1] })[0]).toContain("warn entropy fell");
  expect(texts({})).toEqual([]);
});
