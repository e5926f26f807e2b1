// The loop: let the newest step of the policy answer each task several times, score the answers, train on them, again.
// Each new step answers under the policy's name at once.
//   npm start                  8 steps, with the server that runs on this machine or one of its own
//   STEPS=30 npm start         more
import { FlywheelClient } from "flywheel/client";
import { gatherGroups } from "flywheel/client/rollouts";
import { withServer } from "flywheel/server";
import { reward } from "./reward.ts";
import { tasks } from "./tasks.ts";

const STEPS = Number(process.env.STEPS ?? 8);
const ANSWERS = 8;
const MOST_TOKENS = 8;

await withServer((address) => train(new FlywheelClient(address)));

async function train(client: FlywheelClient): Promise<void> {
  const [base] = await client.baseModels();
  if (base === undefined) throw new Error("the server has no model that can be trained");
  const policy = await client.register({ project: "default", name: "agent-name", base_model: base });

  for (let step = 0; step < STEPS; step++) {
    const groups = await gatherGroups({
      scenarios: tasks(),
      groupSize: 1,
      maxRetries: 2,
      async rollout(task) {
        const messages = [{ role: "user", content: task.prompt }];
        // All answers in one request. Training needs them sampled from the model as it is: temperature and top_p 1.
        const sampling = { n: ANSWERS, temperature: 1, top_p: 1, max_tokens: MOST_TOKENS };
        const reply = await client.chat({ model: policy.inference_name, messages, ...sampling });
        return reply.choices.map((choice) => ({
          messages_and_choices: [...messages, choice],
          reward: reward(task, choice.message.content ?? ""),
        }));
      },
    });
    const rewards = groups.flatMap(({ trajectories }) => trajectories.map((trajectory) => trajectory.reward));
    const mean = rewards.reduce((sum, value) => sum + value, 0) / rewards.length;
    const job = await client.train(policy.id, groups, {
      config: { learning_rate: 4e-4, grad_accumulation_sequences: 32 },
    });
    console.log(`mean reward ${mean.toFixed(2)}; trained step ${job.step}`);
  }
  console.log(
    `talk to it while \`flywheel serve\` runs: flywheel chat --model ${policy.name} "Shall we go? Yes or no?"`,
  );
}
