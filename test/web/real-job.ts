// A server with the bundled model, and a job that it trained: real replies, real gradients, a real record.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { startServer } from "../../src/app/serve.ts";
import { createTraining } from "../../src/app/training.ts";
import {
  FlywheelClient,
  type TrainableModel,
  type TrainingConfig,
  type TrainingJob,
  type TrajectoryGroup,
} from "../../src/client/client.ts";
import { loadConfig } from "../../src/config/load.ts";
import { shared } from "../support/shared-server.ts";

export const KEY = "k";

/** The model is loaded once per file of tests. */
export function realServer(): { readonly url: string } {
  const data = mkdtempSync(join(tmpdir(), "flywheel-page-"));
  afterAll(() => rmSync(data, { recursive: true, force: true }));
  return shared(() => {
    const flags = { model: "bundled", port: 0, data, apiKey: [KEY], logLevel: "error" };
    return startServer(loadConfig({ env: {}, flags }), loadModel, [createTraining]);
  });
}

/** Two groups of four that differ and one of four that are all alike; short replies are rewarded. */
export async function trainJob(
  url: string,
  config: TrainingConfig,
): Promise<{ job: TrainingJob; policy: TrainableModel }> {
  const client = new FlywheelClient({ baseUrl: url, apiKey: KEY });
  const [model] = await client.baseModels();
  const policy = await client.register({ project: "lab", name: "sea", base_model: model! });
  const groups: TrajectoryGroup[] = [];
  for (const [seed, content] of ["Tell me about the sea.", "What is 2 + 2?", "Name a fish."].entries()) {
    const messages = [{ role: "user", content }];
    const sampling = { n: 4, max_tokens: 12, temperature: 1, top_p: 1, seed, logprobs: true, return_token_ids: true };
    const { choices } = await client.chat({ model: policy.inference_name, messages, ...sampling });
    const rewards = choices.map(({ message }) => (seed === 1 ? 1 : 1 / (1 + message.content!.length)));
    groups.push({
      trajectories: choices.map((choice, i) => ({ messages_and_choices: [...messages, choice], reward: rewards[i]! })),
    });
  }
  const job = await client.train(policy.id, groups, { config });
  return { job, policy };
}

export async function get<Answer>(url: string, path: string): Promise<Answer> {
  const response = await fetch(`${url}/v1${path}`, { headers: { authorization: `Bearer ${KEY}` } });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return (await response.json()) as Answer;
}
