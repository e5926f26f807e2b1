// Reinforcement learning in one file: sample several answers to each prompt, score them, train, again. Each step of the
// policy is served under its name as soon as it exists.
//   OPENAI_API_KEY=<token with the scopes inference and training> node examples/07-train.mjs
import { FlywheelClient } from "flywheel/client";
import { gatherGroups } from "flywheel/client/rollouts";

const client = new FlywheelClient({
  baseUrl: process.env.OPENAI_BASE_URL ?? "http://127.0.0.1:8000/v1",
  apiKey: process.env.OPENAI_API_KEY,
});
const [base] = await client.baseModels();
const model = await client.register({ project: "examples", name: "brief", base_model: base });

const prompts = ["What is a flywheel?", "Tell me about the sea.", "Why is the sky blue?", "What is bread made of?"];
/** Short answers are good answers: 0 for one that fills all of its tokens, never quite 1, because the stop token counts. */
const maxTokens = 24;
const score = (choice) => 1 - choice.token_ids.length / maxTokens;

for (let step = 0; step < Number(process.env.STEPS ?? 8); step++) {
  const groups = await gatherGroups({
    scenarios: prompts,
    groupSize: 1,
    maxRetries: 2,
    async rollout(prompt) {
      const messages = [{ role: "user", content: prompt }];
      // eight answers in one request; ids and log-probabilities come with them, because the name is a policy's
      const reply = await client.chat({
        model: model.inference_name,
        messages,
        n: 8,
        temperature: 1,
        top_p: 1,
        max_tokens: maxTokens,
      });
      return reply.choices.map((choice) => ({ messages_and_choices: [...messages, choice], reward: score(choice) }));
    },
  });
  const rewards = groups.flatMap(({ trajectories }) => trajectories.map(({ reward }) => reward));
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const job = await client.train(model.id, groups, {
    config: { learning_rate: 2e-4, grad_accumulation_sequences: 16 },
  });
  console.log(
    `step ${job.step}: mean reward before it ${mean.toFixed(3)}, ${job.report.usage?.tokens ?? 0} tokens trained`,
  );
}
const { model: answeredBy, choices } = await client.chat({
  model: `${model.name}@${await client.latestStep(model.id)}`,
  messages: [{ role: "user", content: prompts[0] }],
  max_tokens: maxTokens,
});
console.log(`${answeredBy}: ${choices[0].message.content}`);
