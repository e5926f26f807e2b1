import { describe, expect, it } from "vitest";
import { benchesOfTest, ended, fakeTrainer, newModel, submit } from "../../../test/support/training-service.ts";
import { createLog } from "../../observe/log.ts";
import { RL_DEFAULTS } from "../config.ts";
import type { Objective } from "../contract.ts";
import { samplerWarning, smallStepsWarning } from "./job-attempt.ts";

const policy = (precalculateLogprobs = false, truncated: number | null = null): Objective => ({
  kind: "policy",
  loss: { ...RL_DEFAULTS.loss, truncatedImportanceSampling: truncated },
  precalculateLogprobs,
  reference: null,
});
const difference = (mean: number) => ({ sampler_logprob_diff_mean: mean, sampler_logprob_diff_max: 2 * mean });

describe("the warning of a different sampler", () => {
  it("comes above 0.05 and names the settings that are missing", () => {
    expect(samplerWarning(difference(0.05), policy(), 0)).toBeNull();
    expect(samplerWarning({}, policy(), 0)).toBeNull();
    const found = samplerWarning(difference(0.0601), policy(true), 0)!;
    expect(found).toMatchObject({ code: "sampler_differs", message: expect.stringContaining("by 0.0601 on average") });
    expect(found.message).toContain("; set truncated_importance_sampling, so");
    expect(samplerWarning(difference(0.06), policy(true, 2), 0)).toBeNull();
  });

  it("says that old trajectories are part of it", () => {
    expect(samplerWarning(difference(1), policy(), 1.5)!.message).toContain("the trajectories are 1.5 steps old");
  });
});

describe("the warning of small steps", () => {
  const result = (rows: number, gpus: number) => ({ tokens: rows, gpus, seconds: 1, peakBytes: 1 });

  it("comes below 2,048 rows per step and GPU, and names what to set", () => {
    expect(smallStepsWarning(result(20_480, 1), 10, policy())).toBeNull();
    expect(smallStepsWarning(result(20_400, 1), 10, policy())!.message).toBe(
      "its gradient steps have 2040 rows on average, and a GPU waits below 2048: " +
        "set packed_sequence_length or raise grad_accumulation_sequences",
    );
    expect(smallStepsWarning(result(20_480, 8), 10, policy())!.message).toContain("256 rows for each GPU on average");
    expect(smallStepsWarning(result(100, 1), 2, { kind: "cross_entropy" })!.message).toContain("raise batch_size");
  });

  it("does not come on processors, nor for a job of one step", () => {
    expect(smallStepsWarning(result(10, 0), 2, policy())).toBeNull();
    expect(smallStepsWarning(result(10, 1), 1, policy())).toBeNull();
  });
});

describe("a job", () => {
  const start = benchesOfTest();

  it("gets each warning once, as an event before its end and in the log", async () => {
    const lines: string[] = [];
    const log = createLog({ level: "warn", format: "json", write: (line) => lines.push(line) });
    const env = { FAKE_TRAINER_GPUS: "1", FAKE_TRAINER_FIRST: JSON.stringify(difference(0.5)) };
    const bench = await start({ log, trainer: fakeTrainer(2, env) });
    const model = await newModel(bench);
    const events = await ended(bench, await submit(bench, model.id));
    const types = ["training_started", "gradient_step", "training_warning", "gradient_step", "training_warning"];
    expect(events.map(({ type }) => type)).toEqual([...types, "training_ended"]);
    const codes = ["sampler_differs", "small_steps"];
    expect(events.filter(({ type }) => type === "training_warning").map(({ data }) => data.code)).toEqual(codes);
    const logged = lines.map((line) => JSON.parse(line) as { code: string; message: string });
    expect(logged.map(({ code }) => code)).toEqual(codes);
    expect(logged[1]!.message).toContain("a training job: its gradient steps have 11 rows");
  });
});
