// Proof of replay over HTTP, with the bundled model at its default precision: a sampled reply is scored again under the
// step that sampled it, and the log-probabilities are the same to the last bit. Sampling ran token by token among other
// requests; scoring computes the whole reply at once.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { type StartedServer, startServer } from "../../src/app/serve.ts";
import { createTraining } from "../../src/app/training.ts";
import { loadConfig } from "../../src/config/load.ts";
import { readModelConfig } from "../../src/model/checkpoint/model-config.ts";
import { eachPair } from "../../src/model/lora/lora-adapter.ts";
import { savePeft } from "../../src/model/lora/peft.ts";
import { identityAdapter } from "../../src/training/files/adapter-files.ts";
import { seededRandom } from "../../src/training/random.ts";

const MINI = fileURLToPath(new URL("../../models/flywheel-mini", import.meta.url));
const data = mkdtempSync(join(tmpdir(), "flywheel-replay-"));
let server: StartedServer;

// biome-ignore lint/suspicious/noExplicitAny: replies are read without a schema
type Loose = any;

async function post(path: string, body: object): Promise<Loose> {
  const headers = { authorization: "Bearer k", "content-type": "application/json" };
  const reply = await fetch(server.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  const json = await reply.json();
  expect(reply.status, JSON.stringify(json)).toBe(200);
  return json;
}

/** An adapter that changes every layer: both factors of every linear map are random. */
function writeAdapter(folder: string): void {
  const config = readModelConfig(MINI);
  const adapter = identityAdapter(config, { rank: 8, alpha: 16 }, 1);
  const random = seededRandom(3);
  for (const { pair } of eachPair(adapter.layers)) {
    for (const factor of [pair.a, pair.b]) for (let i = 0; i < factor.length; i++) factor[i] = (random() - 0.5) / 20;
  }
  savePeft(folder, adapter, config, { baseModel: "flywheel-mini" });
}

beforeAll(async () => {
  writeAdapter(join(data, "random"));
  const flags = { model: "bundled", port: 0, data: join(data, "server"), apiKey: ["k"], logLevel: "error" };
  const config = loadConfig({ env: {}, flags: { ...flags, loraModules: [`random=${join(data, "random")}`] } });
  server = await startServer(config, loadModel, [createTraining]);
  await post("/v1/preview/models", { project: "p", name: "agent", base_model: "flywheel-mini" });
});
afterAll(async () => {
  await server?.close();
  rmSync(data, { recursive: true, force: true });
});

interface Reply {
  prompt: number[];
  ids: number[];
  logprobs: number[];
}

const questions = ["Tell me about the sea.", "What is 412 + 99?", "Name three animals.", "Say yes, no or maybe."];

/** Asks all questions at once, so that the engine runs their tokens together. */
function sample(model: string, more: object = {}): Promise<Reply[]> {
  return Promise.all(
    questions.map(async (content, seed) => {
      const { choices, prompt_token_ids } = await post("/v1/chat/completions", {
        ...{ model, messages: [{ role: "user", content }], max_tokens: 48, temperature: 1, top_p: 1, seed },
        ...{ logprobs: true, return_token_ids: true, ...more },
      });
      const [choice] = choices;
      return {
        prompt: choice.prompt_token_ids ?? prompt_token_ids,
        ids: choice.token_ids,
        logprobs: choice.logprobs.content.map(({ logprob }: { logprob: number }) => logprob),
      };
    }),
  );
}

/** Log-probabilities of the reply after its prompt, in one pass and without a grammar. */
async function score(model: string, { prompt, ids }: Reply): Promise<number[]> {
  const body = { model, prompt: [...prompt, ...ids], echo: true, max_tokens: 0, logprobs: 0 };
  const { choices } = await post("/v1/completions", body);
  return choices[0].logprobs.token_logprobs.slice(prompt.length);
}

it.each(["flywheel-mini", "agent@0", "random"])("%s: scoring a reply gives the bits of sampling it", async (model) => {
  const replies = await sample(model);
  expect(new Set(replies.map(({ ids }) => ids.join())).size).toBe(questions.length);
  for (const reply of replies) {
    expect(reply.ids.length).toBeGreaterThan(0);
    // toEqual compares numbers with Object.is
    expect(await score(model, reply)).toEqual(reply.logprobs);
  }
});

it("random: its replies are not those of the base model", async () => {
  const [reply] = await sample("random");
  expect(await score("flywheel-mini", reply!)).not.toEqual(reply!.logprobs);
});

it.each(["flywheel-mini", "agent@0", "random"])("%s: a structured reply is repeated bit for bit", async (model) => {
  const schema = {
    type: "object",
    properties: { answer: { type: "string", maxLength: 20 }, sure: { type: "boolean" } },
    required: ["answer", "sure"],
  };
  const structured = { structured_outputs: { json: schema } };
  const replies = await sample(model, structured);
  // the same request with the same seed; now each alone
  const again = [];
  for (const [seed, content] of questions.entries()) {
    const body = { model, messages: [{ role: "user", content }], max_tokens: 48, temperature: 1, top_p: 1, seed };
    const { choices } = await post("/v1/chat/completions", {
      ...body,
      ...structured,
      logprobs: true,
      return_token_ids: true,
    });
    again.push(choices[0]);
  }
  for (const [i, reply] of replies.entries()) {
    expect(again[i].token_ids).toEqual(reply.ids);
    expect(again[i].logprobs.content.map(({ logprob }: { logprob: number }) => logprob)).toEqual(reply.logprobs);
    // Without the grammar a token is as likely or less: the rest is the mass of the tokens that the grammar forbids.
    const free = await score(model, reply);
    for (const [t, logprob] of reply.logprobs.entries()) expect(free[t]).toBeLessThanOrEqual(logprob + 1e-12);
    expect(free.some((value, t) => value < reply.logprobs[t]! - 0.01)).toBe(true);
  }
});
