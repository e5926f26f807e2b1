// The loop of the training guide with vLLM as the sampler: register, roll out, train, sample from the new step, roll back,
// fork. Every step is an adapter that vLLM loads. The trainer says how far its log-probabilities are from vLLM's.

import { FlywheelClient } from "../../src/client/client.ts";
import type { Choice, TrainableModel, TrainingEvent, TrajectoryGroup } from "../../src/client/types.ts";
import type { Server } from "./adapters.ts";

const STEPS = 3;
const CHOICES = 8;
const TASKS = ["Tell me about the sea.", "What is two plus two?", "Write a short poem."];
/** Larger than bfloat16 explains. The job's own warning has the same limit. */
const MOST_MEAN_DIFFERENCE = 0.05;

/** Prints what it does. Returns what is wrong. */
export async function trainOn(flywheel: Server, served: string): Promise<string[]> {
  const client = new FlywheelClient({ baseUrl: flywheel.url, apiKey: flywheel.token });
  if (!(await client.baseModels()).includes(served)) {
    console.log("training is off: its trainer needs the weights, of a model that it knows");
    return [];
  }
  const name = `trained-${Date.now().toString(36)}`;
  const model = await client.register({ project: "test-vllm", name, base_model: served });
  const problems: string[] = [];
  const expect = (holds: boolean, problem: string) => {
    if (!holds) problems.push(problem);
  };
  for (let step = 0; step < STEPS; step++) {
    const groups = await rollOut(client, name, (choice) =>
      expect(choice.policy_version === step, `a rollout of step ${step} says step ${choice.policy_version}`),
    );
    const { mean, max } = await train(client, model, groups);
    console.log(`step ${step + 1}: log-probabilities of vLLM and the trainer differ by ${mean} (mean), ${max} (max)`);
    expect(mean <= MOST_MEAN_DIFFERENCE, `step ${step + 1}: they differ by more than ${MOST_MEAN_DIFFERENCE}`);
  }
  const [old, newest] = [await greedy(client, `${name}@1`), await greedy(client, name)];
  expect(newest.policy_version === STEPS, `the newest reply is of step ${newest.policy_version}`);
  expect(logprobsOf(old) !== logprobsOf(newest), "training changed no log-probability");
  await client.rollback(model.id, 1);
  const back = await greedy(client, name);
  expect(back.policy_version === STEPS + 1, `a rollback answers with step ${back.policy_version}`);
  expect(logprobsOf(back) === logprobsOf(old), "a rollback differs from the step that it restores");
  const fork = await client.register({
    project: "test-vllm",
    name: `${name}-fork`,
    from: { model_id: model.id, step: 1 },
  });
  expect(logprobsOf(await greedy(client, fork.name)) === logprobsOf(old), "a fork differs from its origin");
  return problems;
}

async function rollOut(
  client: FlywheelClient,
  model: string,
  check: (choice: Choice) => void,
): Promise<TrajectoryGroup[]> {
  const groups: TrajectoryGroup[] = [];
  for (const content of TASKS) {
    const messages = [{ role: "user", content }];
    const asked = { model, messages, n: CHOICES, temperature: 1, top_p: 1, max_tokens: 24 };
    const { choices } = await client.chat(asked);
    const trajectories = choices.map((choice) => {
      check(choice);
      return { messages_and_choices: [...messages, choice], reward: rewardOf(choice.token_ids!) };
    });
    groups.push({ trajectories });
  }
  return groups;
}

/** Any number that differs between replies. */
function rewardOf(ids: readonly number[]): number {
  return ids.reduce((sum, id) => sum + id, 0) % 97;
}

async function train(
  client: FlywheelClient,
  model: TrainableModel,
  groups: TrajectoryGroup[],
): Promise<{ mean: number; max: number }> {
  const events: TrainingEvent[] = [];
  await client.train(model.id, groups, { config: { learning_rate: 1e-4 }, onEvent: (event) => events.push(event) });
  for (const { data } of events) {
    const { sampler_logprob_diff_mean: mean, sampler_logprob_diff_max: max } = data;
    if (mean !== undefined && max !== undefined) return { mean, max };
  }
  throw new Error("the job does not say how far its sampler is from the trainer");
}

async function greedy(client: FlywheelClient, model: string): Promise<Choice> {
  const messages = [{ role: "user", content: TASKS[0]! }];
  const { choices } = await client.chat({ model, messages, temperature: 0, max_tokens: 16 });
  return choices[0]!;
}

/** Rounded to what vLLM repeats in another batch. */
function logprobsOf({ token_ids, logprobs }: Choice): string {
  const { content } = logprobs as { content: { logprob: number }[] };
  return JSON.stringify([token_ids, content.map(({ logprob }) => logprob.toFixed(3))]);
}
