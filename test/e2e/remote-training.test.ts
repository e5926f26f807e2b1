// The loop of the training guide with two engines on "other machines": register, roll out, train, serve the newest step on
// both, roll back, fork. The adapters are files that the engines see too. Everything has the bits of the embedded engine.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { type StartedServer, startServer } from "../../src/app/serve.ts";
import { createTraining } from "../../src/app/training.ts";
import { FlywheelClient } from "../../src/client/client.ts";
import { gatherGroups } from "../../src/client/rollouts.ts";
import type { TrainableModel, TrainingEvent } from "../../src/client/types.ts";
import { loadConfig } from "../../src/config/load.ts";
import type { Config } from "../../src/config/options.ts";
import { type Loose, looseFetch } from "../support/test-server.ts";
import { databaseOf, folderOfStep, LLAMA } from "../support/training-service.ts";

const STEPS = 3;
const messages = [{ role: "user", content: "a" }];
const folders: string[] = [];

async function configOf(own: Partial<Config> = {}): Promise<Config> {
  const data = mkdtempSync(join(tmpdir(), "flywheel-remote-training-"));
  folders.push(data);
  return {
    ...loadConfig({ env: {} }),
    ...{
      port: 0,
      data,
      database: await databaseOf(data),
      apiKey: ["key"],
      logLevel: "error" as const,
      model: LLAMA,
      servedModelName: ["tiny"],
    },
    ...{ dtype: "int8" as const, threads: 1, loraRank: 4, loraAlpha: 8, ...own },
  };
}

let engines: StartedServer[];
let front: StartedServer;
let embedded: StartedServer;
let configs: { front: Config; embedded: Config };

beforeAll(async () => {
  engines = await Promise.all([1, 2].map(async () => startServer(await configOf(), loadModel)));
  const engineUrl = engines.map(({ url }) => `${url},max=8`);
  configs = { front: await configOf({ engineUrl, engineApiKey: "key" }), embedded: await configOf() };
  front = await startServer(configs.front, loadModel, [createTraining]);
  embedded = await startServer(configs.embedded, loadModel, [createTraining]);
});

afterAll(async () => {
  await Promise.all([front?.close(), embedded?.close()]);
  await Promise.all((engines ?? []).map((engine) => engine.close()));
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

interface Learned {
  model: TrainableModel;
  replies: unknown[];
  weights: string[];
  events: unknown[];
}

async function learn(server: StartedServer, { data }: Config): Promise<Learned> {
  const client = new FlywheelClient({ baseUrl: server.url, apiKey: "key" });
  const model = await client.register({ project: "toy", name: "learner", base_model: "tiny" });
  const learned: Learned = { model, replies: [], weights: [], events: [] };
  for (let step = 0; step < STEPS; step++) {
    const groups = await gatherGroups({
      scenarios: ["a", "b", "c"],
      groupSize: 8,
      async rollout(content, { index }) {
        const asked = [{ role: "user", content }];
        const seed = step * 100 + index;
        const reply = await client.chat({
          model: model.inference_name,
          messages: asked,
          max_tokens: 6,
          temperature: 1,
          seed,
        });
        const choice = reply.choices[0]!;
        expect(choice).toMatchObject({ policy_version: step });
        learned.replies.push([content, index, choice]);
        const ids = choice.token_ids!;
        return {
          messages_and_choices: [...asked, choice],
          reward: ids.filter((id: number) => id < 100).length / ids.length,
        };
      },
    });
    const events: TrainingEvent[] = [];
    const config = { learning_rate: 1e-2 };
    const job = await client.train(model.id, groups, { config, onEvent: (event) => events.push(event) });
    expect(job).toMatchObject({ status: "COMPLETED", step: step + 1 });
    learned.events.push(...events.map(({ type, data }) => [type, data]));
    const folder = join(data, "training", "models", model.id);
    const weights = join(folder, folderOfStep(folder, step + 1)!, "adapter_model.safetensors");
    learned.weights.push(readFileSync(weights, "hex"));
  }
  learned.replies.sort();
  return learned;
}

async function complete(server: StartedServer, body: object): Promise<Loose> {
  const headers = { authorization: "Bearer key", "content-type": "application/json" };
  const options = { method: "POST", headers, body: JSON.stringify(body) };
  return (await looseFetch(`${server.url}/v1/completions`, options)).json();
}

it("learns on two engines what it learns on its own, and serves it on both", async () => {
  const [remote, own] = await Promise.all([learn(front, configs.front), learn(embedded, configs.embedded)]);
  expect(JSON.stringify(remote.replies)).toBe(JSON.stringify(own.replies));
  // Ratios and divergences between sampler and trainer are among them.
  expect(remote.events).toEqual(own.events);
  expect(remote.weights).toEqual(own.weights);
  for (const { requests } of front.service.engine.replicas!()) expect(requests).toBeGreaterThan(0);

  const client = new FlywheelClient({ baseUrl: front.url, apiKey: "key" });
  const body = { prompt: [5, 6, 7], max_tokens: 8, temperature: 0, logprobs: 2, return_token_ids: true };
  const newest = await complete(front, { ...body, model: "learner" });
  expect(newest.model).toBe(`learner:step${STEPS}`);
  // Each engine has the newest step under the name of its content.
  for (const engine of engines) {
    const adapters = async () => engine.service.models.adapters().map(({ path }) => path);
    await expect.poll(adapters).toContainEqual(expect.stringContaining(`step-${STEPS}`));
    const { name } = engine.service.models.adapters().find(({ path }) => path.includes(`step-${STEPS}-`))!;
    expect(name).toMatch(/^fw-[0-9a-f]{8}-[0-9a-f]+$/);
    expect((await complete(engine, { ...body, model: name })).choices).toEqual(newest.choices);
  }

  // A rollback is a new step with the content of an old one.
  await client.rollback(remote.model.id, 1);
  const asked = { messages, max_tokens: 4, temperature: 0 };
  const [old, back] = [
    await client.chat({ ...asked, model: "learner@1" }),
    await client.chat({ ...asked, model: "learner" }),
  ];
  expect(back.choices[0]).toMatchObject({ policy_version: STEPS + 1, token_ids: old.choices[0]!.token_ids });
  const forked = await client.register({ project: "toy", name: "fork", from: { model_id: remote.model.id, step: 1 } });
  const reply = await client.chat({ ...asked, model: forked.inference_name });
  expect(reply.choices[0]!.token_ids).toEqual(back.choices[0]!.token_ids);
});
