// Proof of replay over HTTP: a reply that was sampled token by token is scored again in one prefill, under the step that wrote
// it, and every log-probability is the same to the last bit. A constrained reply has probabilities over legal tokens only, so
// its request runs again with the same seed. The page's "Replay" does the same.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { type RunningServer, startServer } from "../../src/app/serve.ts";
import { createTraining } from "../../src/app/training.ts";
import { FlywheelClient } from "../../src/client/client.ts";
import { loadConfig } from "../../src/config/load.ts";
import { LLAMA } from "../fakes/training-service.ts";

interface Sampled {
  tokenIds: number[];
  logprobs: number[];
}

const MESSAGES = [{ role: "user", content: "Tell me about the sea." }];
const data = mkdtempSync(join(tmpdir(), "flywheel-replay-"));
let server: RunningServer;
let client: FlywheelClient;
let policy: { id: string; name: string };

beforeAll(async () => {
  const config = {
    ...loadConfig({ env: {} }),
    ...{ port: 0, data, apiKey: ["key"], logLevel: "error" as const },
    ...{ model: LLAMA, servedModelName: ["tiny"], dtype: "int8" as const, threads: 1, loraRank: 4, loraAlpha: 8 },
  };
  server = await startServer(config, loadModel, [createTraining]);
  client = new FlywheelClient({ baseUrl: server.url, apiKey: "key" });
  policy = await client.register({ project: "p", name: "agent", base_model: "tiny" });
  const { choices } = await client.chat({
    model: "agent",
    messages: MESSAGES,
    n: 4,
    max_tokens: 6,
    temperature: 1,
    seed: 1,
  });
  const trajectories = choices.map((choice, i) => ({ messages_and_choices: [...MESSAGES, choice], reward: i }));
  await client.train(policy.id, [{ trajectories }], { config: { learning_rate: 1e-2 } });
});

afterAll(async () => {
  await server?.close();
  rmSync(data, { recursive: true, force: true });
});

async function post<Reply>(path: string, body: unknown): Promise<Reply> {
  const response = await fetch(`${server.url}${path}`, {
    method: "POST",
    headers: { authorization: "Bearer key", "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as Reply;
}

async function sample(model: string, more: object = {}): Promise<{ promptIds: number[]; choices: Sampled[] }> {
  const reply = await post<{
    prompt_token_ids: number[];
    choices: { token_ids: number[]; logprobs: { content: { logprob: number }[] } }[];
  }>("/v1/chat/completions", {
    ...{ model, messages: MESSAGES, n: 3, seed: 7, temperature: 1, max_tokens: 24 },
    ...{ logprobs: true, return_token_ids: true, ...more },
  });
  const choices = reply.choices.map(({ token_ids, logprobs }) => ({
    tokenIds: token_ids,
    logprobs: logprobs.content.map(({ logprob }) => logprob),
  }));
  return { promptIds: reply.prompt_token_ids, choices };
}

/** The log-probabilities of a reply, from one prefill. */
async function rescored(model: string, promptIds: readonly number[], tokenIds: readonly number[]): Promise<number[]> {
  const prompt = [...promptIds, ...tokenIds];
  const body = { model, prompt, max_tokens: 0, echo: true, prompt_logprobs: 1 };
  const { choices } = await post<{ choices: { prompt_logprobs: (Record<string, { logprob: number }> | null)[] }[] }>(
    "/v1/completions",
    body,
  );
  return tokenIds.map((id, i) => choices[0]!.prompt_logprobs[promptIds.length + i]![String(id)]!.logprob);
}

describe("replay", () => {
  it.each(["tiny", "agent@0", "agent@1"])("of %s gives the same bits", async (model) => {
    const { promptIds, choices } = await sample(model);
    for (const { tokenIds, logprobs } of choices) {
      expect(logprobs.length).toBeGreaterThan(0);
      expect(await rescored(model, promptIds, tokenIds)).toEqual(logprobs);
    }
  });

  it("under another step gives other numbers", async () => {
    const { promptIds, choices } = await sample("agent@1");
    const { tokenIds, logprobs } = choices[0]!;
    expect(await rescored("agent@0", promptIds, tokenIds)).not.toEqual(logprobs);
  });

  it.each(["tiny", "agent@1"])("of a constrained reply of %s, asked again with its seed", async (model) => {
    const structured = { structured_outputs: { regex: "[a-z]{3,12}" } };
    const first = await sample(model, structured);
    expect(await sample(model, structured)).toEqual(first);
    // Legal tokens share all the probability, so each has at least what it had among all tokens.
    const { tokenIds, logprobs } = first.choices[0]!;
    const free = await rescored(model, first.promptIds, tokenIds);
    free.forEach((logprob, i) => {
      expect(logprob).toBeLessThanOrEqual(logprobs[i]! + 1e-6);
    });
  });
});
