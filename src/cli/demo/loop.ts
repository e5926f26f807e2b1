// The loop of reinforcement learning as a client writes it: roll out groups from the newest policy, score them, train,
// again. This is the whole of it; examples/ shows the same against a server of your own.

import type { FlywheelClient } from "../../client/client.ts";
import { gatherGroups } from "../../client/rollouts.ts";
import type { TrajectoryGroup } from "../../client/types.ts";
import type { DemoTask } from "./tasks.ts";

export interface LoopOptions {
  client: FlywheelClient;
  baseModel: string;
  task: DemoTask;
  steps: number;
  /** Before each training: the mean reward of what was rolled out for it. */
  onStep(step: number, reward: number): void;
  /** No new step begins after this moment (performance.now()). */
  deadline: number;
}

export interface LoopResult {
  /** Mean reward of each step's rollouts, before training on them. */
  curve: number[];
  modelName: string;
}

export async function trainOn(options: LoopOptions): Promise<LoopResult> {
  const { client, task, steps, onStep, deadline } = options;
  const model = await client.register({ project: "demo", name: task.name, base_model: options.baseModel });
  const curve: number[] = [];
  for (let step = 0; step < steps && performance.now() < deadline; step++) {
    const groups = await rollOut(options, model.name);
    curve.push(meanReward(groups));
    onStep(step, curve.at(-1)!);
    await client.train(model.id, groups, {
      config: { learning_rate: task.batch.learningRate, grad_accumulation_sequences: task.batch.accumulate },
    });
  }
  return { curve, modelName: model.name };
}

/** All attempts at a prompt come from one request, which computes the prompt once. */
function rollOut({ client, task }: LoopOptions, model: string): Promise<TrajectoryGroup[]> {
  return gatherGroups({
    scenarios: task.prompts(task.batch.prompts),
    groupSize: 1,
    concurrency: 32,
    async rollout(prompt) {
      const messages = [{ role: "user", content: prompt }];
      const sampling = { temperature: 1, top_p: 1, max_tokens: task.maxTokens, n: task.batch.groupSize };
      const reply = await client.chat({ model, messages, ...sampling });
      return reply.choices.map((choice) => ({
        messages_and_choices: [...messages, choice],
        reward: task.reward(prompt, choice.message.content ?? ""),
      }));
    },
  });
}

function meanReward(groups: readonly TrajectoryGroup[]): number {
  const rewards = groups.flatMap(({ trajectories }) => trajectories.map(({ reward }) => reward));
  return rewards.reduce((sum, reward) => sum + reward, 0) / Math.max(1, rewards.length);
}
