// The reinforcement-learning loop as a client writes it: roll out groups with the newest policy, score them, train, repeat.
// examples/07-train.mjs shows the same loop against your own server.

import type { FlywheelClient } from "../../client/client.ts";
import { gatherGroups } from "../../client/rollouts.ts";
import type { TrajectoryGroup } from "../../client/types.ts";
import type { DemoTask } from "./tasks.ts";

export interface LoopOptions {
  client: FlywheelClient;
  baseModel: string;
  task: DemoTask;
  steps: number;
  /** Called before each training job with the mean reward of its rollouts. */
  onStep(step: number, reward: number): void;
  /** No step starts after this time (performance.now()). */
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

/** One request makes all attempts at a prompt, so the prompt is computed once. */
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
