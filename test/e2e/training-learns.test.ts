// The whole loop on a tiny model: a real server, rollouts over HTTP, real gradients in the trainer process, the better policy
// served at once. The reward must rise, and sampler and trainer must agree on every log-probability.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { type StartedServer, startServer } from "../../src/app/serve.ts";
import { createTraining } from "../../src/app/training.ts";
import { FlywheelClient } from "../../src/client/client.ts";
import { gatherGroups } from "../../src/client/rollouts.ts";
import type { TrainingEvent, TrajectoryGroup } from "../../src/client/types.ts";
import { loadConfig } from "../../src/config/load.ts";
import type { Config } from "../../src/config/options.ts";
import { databaseOf, folderOfStep, LLAMA } from "../support/training-service.ts";

const PROMPTS = ["a", "b", "c"];
const GROUP = 8;
/** Enough for any machine's rounding: with 52 other seeds, the last three steps ended at 0.93 or more. */
const STEPS = 32;

/** The toy task: answer with bytes below 100, such as capital letters and digits. Chance is about 0.4. */
const reward = (ids: readonly number[]) => ids.filter((id) => id < 100).length / ids.length;

let server: StartedServer;
let client: FlywheelClient;
let config: Config;
beforeAll(async () => {
  const data = mkdtempSync(join(tmpdir(), "flywheel-learns-"));
  config = {
    ...loadConfig({ env: {} }),
    ...{ port: 0, data, database: await databaseOf(data), apiKey: ["key"], logLevel: "error" },
    ...{ model: LLAMA, servedModelName: ["tiny"], dtype: "int8", threads: 1, loraRank: 4, loraAlpha: 8 },
  };
  server = await startServer(config, loadModel, [createTraining]);
  client = new FlywheelClient({ baseUrl: server.url, apiKey: "key" });
});
afterAll(async () => {
  await server.close();
  rmSync(config.data, { recursive: true, force: true });
});

/** Samples one reply per attempt from the policy's newest step. */
async function rollOut(model: string, seed: number): Promise<TrajectoryGroup[]> {
  return gatherGroups({
    scenarios: PROMPTS,
    groupSize: GROUP,
    async rollout(prompt, { index }) {
      const messages = [{ role: "user", content: prompt }];
      const reply = await client.chat({ model, messages, max_tokens: 4, temperature: 1, seed: seed * 100 + index });
      const choice = reply.choices[0]!;
      return { messages_and_choices: [...messages, choice], reward: reward(choice.token_ids!) };
    },
  });
}
const meanReward = (groups: TrajectoryGroup[]) => {
  const rewards = groups.flatMap(({ trajectories }) => trajectories.map((trajectory) => trajectory.reward));
  return rewards.reduce((sum, value) => sum + value, 0) / rewards.length;
};
const adapter = (modelId: string, step: number) => {
  const folder = join(config.data, "training", "models", modelId);
  return readFileSync(join(folder, folderOfStep(folder, step)!, "adapter_model.safetensors"), "hex");
};

describe("the loop", () => {
  it("learns, stays on policy, and serves what it learned", async () => {
    const model = await client.register({ project: "toy", name: "learner", base_model: "tiny" });
    const curve: number[] = [];
    for (let step = 0; step < STEPS; step++) {
      const groups = await rollOut(model.inference_name, step);
      const choices = groups.flatMap(({ trajectories }) => trajectories.map((t) => t.messages_and_choices[1]));
      for (const choice of choices) expect(choice).toMatchObject({ policy_version: step });
      curve.push(meanReward(groups));
      const events: TrainingEvent[] = [];
      const job = await client.train(model.id, groups, {
        config: { learning_rate: 1e-2, grad_accumulation_sequences: 8 },
        onEvent: (event) => events.push(event),
      });
      expect(job).toMatchObject({ status: "COMPLETED", step: step + 1 });
      const first = events.find(({ type }) => type === "gradient_step");
      // Before the first update, the trainer's policy is exactly the sampler's.
      if (first) expect(first.data.kl_old_new_k3).toBeLessThan(1e-9);
      if (first) expect(first.data.sampler_logprob_diff_max).toBeLessThan(1e-5);
    }
    const start = curve.slice(0, 3).reduce((sum, value) => sum + value, 0) / 3;
    const end = curve.slice(-3).reduce((sum, value) => sum + value, 0) / 3;
    expect(end).toBeGreaterThan(Math.max(0.85, start + 0.3));

    const untrained = await rollOut("learner@0", 50);
    const trained = await rollOut(`wandb-artifact:///api-key-1/toy/learner:step${STEPS}`, 50);
    expect(meanReward(trained)).toBeGreaterThan(meanReward(untrained) + 0.3);
    const { model: name } = await client.chat({
      model: "learner",
      messages: [{ role: "user", content: "a" }],
      max_tokens: 1,
    });
    expect(name).toBe(`learner:step${STEPS}`);
  });

  it("warns of a sampler whose log-probabilities are not the trainer's, and measures by how much", async () => {
    const model = await client.register({ project: "toy", name: "shifted", base_model: "tiny" });
    const groups = await rollOut("shifted", 5);
    for (const { trajectories } of groups) {
      for (const { messages_and_choices: items } of trajectories) {
        const { logprobs } = items[1] as { logprobs: { content: { logprob: number }[] } };
        for (const entry of logprobs.content) entry.logprob -= 0.25;
      }
    }
    const train = async (options: Record<string, unknown>) => {
      const events: TrainingEvent[] = [];
      await client.train(model.id, groups, {
        config: { learning_rate: 0, ...options },
        onEvent: (event) => events.push(event),
      });
      return events;
    };
    const events = await train({});
    const steps = events.filter(({ type }) => type === "gradient_step").map(({ data }) => data);
    expect(steps[0]!.sampler_logprob_diff_mean).toBeCloseTo(0.25, 4);
    expect(steps[0]!.sampler_logprob_diff_max).toBeCloseTo(0.25, 4);
    expect(steps[1]).not.toHaveProperty("sampler_logprob_diff_mean");
    const warnings = events.filter(({ type }) => type === "training_warning").map(({ data }) => data);
    expect(warnings).toEqual([
      {
        code: "sampler_differs",
        message:
          "the sampler's log-probabilities differ from the trainer's by 0.25 on average and 0.25 at most; " +
          "set precalculate_logprobs and truncated_importance_sampling, so that the loss corrects for it.",
      },
    ]);
    const corrected = await train({ precalculate_logprobs: true, truncated_importance_sampling: 2 });
    const first = corrected.find(({ type }) => type === "gradient_step")!;
    expect(first.data.sampler_logprob_diff_mean).toBeCloseTo(0.25, 4);
    expect(corrected.map(({ type }) => type)).not.toContain("training_warning");
    const kept: unknown[] = [];
    for await (const { metrics } of client.checkpoints(model.id)) kept.push(metrics.sampler_logprob_diff_mean);
    expect(kept.slice(1)).toEqual([expect.closeTo(0.25, 4), expect.closeTo(0.25, 4)]);
  });

  it("gives the same events and a bit-identical adapter for the same job from the same step", async () => {
    const seen: { events: unknown[]; weights: string }[] = [];
    const [first, second] = await Promise.all(
      ["twin-a", "twin-b"].map((name) => client.register({ project: "toy", name, base_model: "tiny" })),
    );
    const groups = await rollOut("twin-a", 7);
    for (const { id } of [first!, second!]) {
      const events: unknown[] = [];
      const options = {
        config: { learning_rate: 1e-2 },
        onEvent: ({ type, data }: TrainingEvent) => events.push([type, data]),
      };
      await client.train(id, groups, options);
      await client.train(id, groups, options);
      seen.push({ events, weights: adapter(id, 1) + adapter(id, 2) });
    }
    expect(seen[0]!.events.length).toBeGreaterThan(10);
    expect(seen[0]).toEqual(seen[1]);
  });

  it("runs every option: precalculated and truncated ratios, KL to a step, PPO at sequence level, SFT", async () => {
    const model = await client.register({ project: "toy", name: "options", base_model: "tiny" });
    const steps = async (options: Record<string, unknown>) => {
      const events: TrainingEvent[] = [];
      const groups = await rollOut("options", 3);
      await client.train(model.id, groups, {
        config: { learning_rate: 1e-2, grad_accumulation_sequences: 6, ...options },
        onEvent: (event) => events.push(event),
      });
      const data = events.filter(({ type }) => type === "gradient_step").map((event) => event.data);
      for (const values of data) for (const value of Object.values(values)) expect(Number.isFinite(value)).toBe(true);
      return data;
    };
    expect((await steps({})).length).toBeGreaterThan(1);
    const kl = await steps({ kl_penalty_coef: 0.1 });
    expect(Math.abs(kl.at(-1)!.kl_policy_ref!)).toBeGreaterThan(0);
    const lagged = await steps({ kl_penalty_coef: 0.1, kl_penalty_step_lag: 1 });
    expect(lagged[0]!.kl_policy_ref).not.toBe(kl[0]!.kl_policy_ref);
    const precalculated = await steps({ precalculate_logprobs: true, truncated_importance_sampling: 2 });
    expect(precalculated[0]!.ratio_mean).toBeCloseTo(1, 9);
    await steps({ ppo: true, importance_sampling_level: "sequence", mask_prob_ratio: true, alt_k2_tau: 0.1 });
    const all = await steps({
      grad_accumulation_sequences: "all",
      num_trajectories_learning_rate_multiplier_power: 0.5,
    });
    expect(all).toHaveLength(1);
    expect(all[0]!.learning_rate).toBeCloseTo(1e-2 * Math.sqrt(all[0]!.num_datums!), 12);
  });
});

it("trains two models at once in separate processes while a third policy answers", async () => {
  const models = await Promise.all(
    ["left", "right"].map((name) => client.register({ project: "toy", name, base_model: "tiny" })),
  );
  const groups = await rollOut("left", 11);
  let training = true;
  const jobs = Promise.all(
    models.map(({ id }) => client.train(id, [...groups, ...groups, ...groups], { config: { learning_rate: 1e-3 } })),
  ).finally(() => {
    training = false;
  });
  let answered = 0;
  while (training) {
    const reply = await client.chat({ model: "learner", messages: [{ role: "user", content: "a" }], max_tokens: 2 });
    expect(reply.choices[0]).toMatchObject({ policy_version: STEPS, token_ids: expect.any(Array) });
    answered++;
  }
  const [left, right] = await jobs;
  expect(answered).toBeGreaterThan(3);
  // The jobs overlapped in time.
  expect(Date.parse(left!.training_start!)).toBeLessThan(Date.parse(right!.training_end!));
  expect(Date.parse(right!.training_start!)).toBeLessThan(Date.parse(left!.training_end!));
  expect(adapter(models[0]!.id, 1)).toBe(adapter(models[1]!.id, 1));
});

it("reports training metrics", async () => {
  const page = async () => (await fetch(`${server.url}/metrics`, { headers: { authorization: "Bearer key" } })).text();
  await expect.poll(page).toMatch(/flywheel_training_jobs\{state="running"\} 0/);
  const text = await page();
  expect(text).toMatch(/flywheel_training_jobs_total\{status="COMPLETED"\} [1-9]/);
  expect(text).toMatch(/flywheel_training_steps_total [1-9]/);
  expect(text).toMatch(/flywheel_training_tokens_total [1-9]\d{3}/);
});

describe("supervised fine-tuning", () => {
  it("makes the examples more likely", async () => {
    const model = await client.register({ project: "toy", name: "pupil", base_model: "tiny" });
    const example = {
      messages: [
        { role: "user", content: "a" },
        { role: "assistant", content: "HI" },
      ],
    };
    const job = await client.submitExamples(model.id, new Array(30).fill(example), {
      config: { learning_rate: 3e-2, batch_size: 1 },
    });
    expect(job.kind).toBe("sft");
    const losses: number[] = [];
    for await (const { type, data } of client.events(job.id)) if (type === "gradient_step") losses.push(data.loss!);
    expect(losses.at(-1)!).toBeLessThan(losses[0]! / 4);
    const reply = await client.chat({
      model: "pupil",
      messages: [example.messages[0]!],
      max_tokens: 2,
      temperature: 0,
    });
    expect(reply.choices[0]!.message.content).toBe("HI");
  });
});
