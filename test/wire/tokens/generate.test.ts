// POST /inference/v1/generate: token ids in, token ids out.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { TokenChunk, TokenReply } from "../../../src/api/dialects/tokens/tokens.schema.ts";
import { NEUTRAL_DEFAULTS } from "../../../src/api/generation/sampling.ts";
import { createTraining } from "../../../src/app/training.ts";
import type { EngineOutput, GenerateRequest } from "../../../src/engine/contract.ts";
import { OutputText } from "../../../src/text/output-text.ts";
import { adapterFolder } from "../../support/adapter-folder.ts";
import { EMBEDDED_ENGINE, needing } from "../../support/needs.ts";
import { expectShape, shared, sharedServer } from "../../support/shared-server.ts";
import { API_KEY, type Loose, startTestServer } from "../../support/test-server.ts";
import { LLAMA } from "../../support/training-service.ts";

const PATH = "/inference/v1/generate";
const server = sharedServer({
  config: { allowedEngineArgs: ["a", "from"] },
  model: { defaults: { ...NEUTRAL_DEFAULTS, temperature: 0, topK: 1, eosTokenIds: [122] } },
});
const ids = (text: string) => [...Buffer.from(text)];
const order = (text: string) => ids(`say:${text}\n[assistant]`);
const generate = async (token_ids: number[], sampling_params: object = {}, more: object = {}): Promise<Loose> => {
  const response = await server.post(PATH, { token_ids, sampling_params, ...more });
  if (response.status !== 200) throw new Error(`status ${response.status}: ${await response.text()}`);
  const reply = await response.json();
  expectShape(TokenReply, reply);
  return reply;
};
const streamed = async (token_ids: number[], sampling_params: object = {}, more: object = {}): Promise<Loose[]> => {
  const chunks = await server.stream({ token_ids, sampling_params, ...more }, PATH);
  for (const chunk of chunks) expectShape(TokenChunk, chunk);
  return chunks;
};
/** What the engine is asked for. */
async function requestOf(work: () => Promise<unknown>): Promise<GenerateRequest> {
  const { engine } = server.service;
  const { generate } = engine;
  let seen: GenerateRequest | undefined;
  engine.generate = (request) => {
    seen = request;
    return generate.call(engine, request);
  };
  await work();
  engine.generate = generate;
  return seen!;
}

describe("a whole reply", () => {
  it("has the tokens of the output, the one that ended it included", async () => {
    const reply = await generate(order("hey"), {}, { request_id: "mine" });
    expect(reply).toEqual({
      request_id: "generate-tokens-mine",
      model: "fake",
      created: expect.any(Number),
      choices: [{ index: 0, token_ids: [...ids("hey"), 2], logprobs: null, finish_reason: "stop" }],
      usage: {
        prompt_tokens: order("hey").length,
        completion_tokens: 4,
        total_tokens: order("hey").length + 4,
        prompt_tokens_details: { cached_tokens: 0 },
      },
      prompt_logprobs: null,
      kv_transfer_params: null,
    });
  });

  it("takes the request's id from the header first, and answers it there", async () => {
    const body = { token_ids: order("x"), sampling_params: {}, request_id: "body" };
    const reply = await server.post(PATH, body, { "x-request-id": "header" });
    expect(reply.headers.get("x-request-id")).toBe("header");
    expect((await reply.json()).request_id).toBe("generate-tokens-header");
  });

  it("gives n choices, each with the seed that follows", async () => {
    const sampling = { n: 3, seed: 7, max_tokens: 6 };
    const { choices, usage } = await generate(ids("go"), sampling);
    expect(choices.map(({ index }: Loose) => index)).toEqual([0, 1, 2]);
    expect(usage).toMatchObject({ prompt_tokens: 2, completion_tokens: 18 });
    for (const index of [0, 1, 2]) {
      const alone = await generate(ids("go"), { seed: 7 + index, max_tokens: 6 });
      expect(alone.choices[0].token_ids).toEqual(choices[index].token_ids);
    }
  });

  it.each([
    [{ logprobs: 0 }, 1],
    [{ logprobs: 1 }, 1],
    [{ logprobs: 3 }, 3],
    [{ logprob_token_ids: [65, 66] }, 3],
    [{ logprobs: 2, logprob_token_ids: [65, 66] }, 3],
  ])("shows with %j as many alternatives, the sampled token first", async (wanted, count) => {
    const [{ token_ids, logprobs }] = (await generate(ids("go"), { max_tokens: 5, seed: 1, ...wanted })).choices;
    expect(logprobs.content.map(({ token }: Loose) => token)).toEqual(token_ids.map((id: number) => `token_id:${id}`));
    for (const { top_logprobs: top, ...own } of logprobs.content) {
      expect(top).toHaveLength(count);
      expect(top[0]).toEqual(own);
      expect(own.bytes).toBeNull();
      if ("logprob_token_ids" in wanted) expect(top.slice(1).map(({ token }: Loose) => token)).toContain("token_id:65");
    }
  });

  it("has the prompt's log probabilities, its own token first", async () => {
    const { prompt_logprobs } = await generate(ids("abc"), { max_tokens: 1, prompt_logprobs: 1 });
    expect(prompt_logprobs).toHaveLength(3);
    expect(prompt_logprobs[0]).toBeNull();
    expect(prompt_logprobs[2][99]).toMatchObject({ decoded_token: "c", logprob: expect.any(Number) });
  });
});

describe("the same bits as /v1/completions", () => {
  const sampled = { max_tokens: 20, seed: 11, temperature: 0.9, top_p: 0.95, logprobs: 2 };
  it.each<[string, object]>([
    ["sampled", {}],
    ["penalties", { frequency_penalty: 1, presence_penalty: -1, repetition_penalty: 1.2, min_p: 0.01, top_k: 40 }],
    ["n", { n: 2 }],
    ["structured output", { structured_outputs: { regex: "[a-f]{8}" } }],
    ["masks", { logit_bias: { 65: 30, 66: 30, 67: 30 }, bad_words: ["A"], allowed_token_ids: [65, 66, 67] }],
    ["endings", { min_tokens: 4, stop_token_ids: [...Array(200).keys()], ignore_eos: true }],
    ["stop strings", { logit_bias: { 65: 30, 66: 30 }, stop: ["AB"], include_stop_str_in_output: true }],
    [
      "repetition detection",
      { temperature: 0, logit_bias: { 65: 99 }, repetition_detection: { max_pattern_size: 2, min_count: 3 } },
    ],
  ])("%s", async (_name, more) => {
    const body = { top_k: 0, ...sampled, ...more };
    const text = { prompt: ids("go on"), ...body, return_token_ids: true, return_tokens_as_token_ids: true };
    const wanted = (await (await server.post("/v1/completions", text)).json()).choices;
    const found = (await generate(ids("go on"), { ...sampled, ...more })).choices;
    expect(found).toHaveLength(wanted.length);
    for (const [i, { index, token_ids, logprobs, finish_reason }] of wanted.entries()) {
      expect(found[i]).toMatchObject({ index, token_ids, finish_reason });
      expect(found[i].logprobs.content.map(({ logprob }: Loose) => logprob)).toEqual(logprobs.token_logprobs);
      for (const [k, { top_logprobs }] of found[i].logprobs.content.entries()) {
        for (const { token, logprob } of top_logprobs) expect(logprobs.top_logprobs[k][token]).toBe(logprob);
      }
    }
  });
});

describe("sampling_params", () => {
  it("default to neutral values, whatever the model recommends, but the model's end ids still apply", async () => {
    const { sampling } = await requestOf(() => generate(ids("go"), { max_tokens: 1 }));
    expect(sampling).toMatchObject({ temperature: 1, topK: 0, topP: 1, stopTokenIds: [122], eosTokenId: 2 });
  });

  it.each<[object, number]>([
    [{}, 2048 - 2],
    [{ max_tokens: null }, 2048 - 2],
    [{ max_tokens: 5 }, 5],
    [{ max_tokens: 2048 }, 2048 - 2],
    [{ max_tokens: 1e9 }, 2048 - 2],
  ])("%j is a budget that ends with the context", async (budget, expected) => {
    const { sampling } = await requestOf(() =>
      generate(ids("go"), { ...budget, stop_token_ids: [...Array(256).keys()] }),
    );
    expect(sampling.maxTokens).toBe(expected);
  });

  it("follow the model's max_new_tokens when max_tokens is left out, not when it is null", async () => {
    const limited = await startTestServer({ model: { defaults: { ...NEUTRAL_DEFAULTS, maxNewTokens: 9 } } });
    const tokens = async (sampling_params: object) => {
      const reply = await (await limited.post(PATH, { token_ids: ids("go"), sampling_params })).json();
      return reply.usage.completion_tokens;
    };
    expect(await tokens({})).toBe(9);
    expect(await tokens({ max_tokens: 12 })).toBe(12);
    expect(await tokens({ max_tokens: null })).toBe(2046);
    await limited.close();
  });

  it("need text for stop strings", async () => {
    const wordy = { logit_bias: { 65: 90, 66: 90, 67: 90 }, seed: 3, stop: ["AB", "BA"], max_tokens: 200 };
    const { choices } = await generate(ids("go"), wordy);
    expect(Buffer.from(choices[0].token_ids).toString()).toMatch(/^(A|B|C)*(AB|BA)$/);
    expect(choices[0].finish_reason).toBe("stop");
    const refused = await server.post(PATH, { token_ids: [1], sampling_params: { ...wordy, detokenize: false } });
    expect(refused.status).toBe(400);
    expect((await refused.json()).error).toMatchObject({ param: "stop", message: expect.stringMatching(/detokenize/) });
  });

  needing(EMBEDDED_ENGINE).it("make no text without stop strings", async () => {
    const push = vi.spyOn(OutputText.prototype, "push");
    const four = { max_tokens: 4, ignore_eos: true };
    await generate(ids("go"), four);
    expect(push).not.toHaveBeenCalled();
    await generate(ids("go"), { ...four, stop: ["never"] });
    expect(push).toHaveBeenCalledTimes(4);
    push.mockRestore();
  });

  needing(EMBEDDED_ENGINE).it("reach the engine with what belongs to other engines", async () => {
    const params = { max_tokens: 1, extra_args: { a: { b: [1] }, kv_transfer_params: { from: 1 } } };
    const more = { cache_salt: "s", priority: -2 };
    const seen = await requestOf(() => generate(ids("go"), params, more));
    expect(seen).toMatchObject({ cacheSalt: expect.stringMatching(/^[0-9a-f]{64}$/), priority: -2 });
    expect(seen.extra).toEqual({ engineArgs: { a: { b: [1] } }, kvTransferParams: { from: 1 } });
    const both = await requestOf(() => generate(ids("go"), params, { kv_transfer_params: { from: 2 } }));
    expect(both.extra?.kvTransferParams).toEqual({ from: 2 });
  });
});

it("answers what the engine says about a transfer of keys and values", async () => {
  const { engine } = server.service;
  const { generate: original } = engine;
  engine.generate = (request) => {
    const generation = original.call(engine, request);
    async function* told(): AsyncGenerator<EngineOutput> {
      for await (const output of generation) {
        if (output.type !== "tokens" || output.finish === null) yield output;
        else yield { ...output, finish: { ...output.finish, kvTransferParams: { blocks: [1] } } };
      }
    }
    const outputs = told();
    return {
      stop: (index) => generation.stop(index),
      abort: () => generation.abort(),
      [Symbol.asyncIterator]: () => outputs,
    };
  };
  const reply = await generate(ids("go"), { max_tokens: 1 }, { kv_transfer_params: { do_remote_decode: true } });
  engine.generate = original;
  expect(reply.kv_transfer_params).toEqual({ blocks: [1] });
});

describe("a stream", () => {
  it("carries the tokens of a whole reply, and [DONE]", async () => {
    const sampling = { n: 2, seed: 5, max_tokens: 8, logprobs: 2 };
    const { choices } = await generate(ids("go"), sampling);
    const chunks = await streamed(ids("go"), sampling, { request_id: "r" });
    expect(chunks.length).toBeGreaterThan(8);
    for (const choice of choices) {
      const own = chunks.map((chunk) => chunk.choices[0]).filter(({ index }) => index === choice.index);
      expect(own.flatMap(({ token_ids }) => token_ids)).toEqual(choice.token_ids);
      expect(own.flatMap(({ logprobs }) => logprobs.content)).toEqual(choice.logprobs.content);
      expect(own.map(({ finish_reason }) => finish_reason)).toEqual([...own.slice(1).map(() => null), "length"]);
    }
    for (const { request_id, usage } of chunks) expect([request_id, usage]).toEqual(["generate-tokens-r", null]);
  });

  it("ends with its usage, or has it in every chunk", async () => {
    const usage = { prompt_tokens: 2, completion_tokens: 3, total_tokens: 5 };
    const greedy = { max_tokens: 3, temperature: 0 };
    const last = await streamed(ids("go"), greedy, { stream_options: { include_usage: true } });
    expect(last.at(-1)).toMatchObject({ choices: [], usage });
    const options = { include_usage: true, continuous_usage_stats: true };
    const every = await streamed(ids("go"), greedy, { stream_options: options });
    expect(every.map((chunk) => chunk.usage.completion_tokens)).toEqual([1, 2, 3, 3]);
  });

  it("sends chunks of stream_interval tokens, the first and the last at once", async () => {
    const chunks = await streamed(ids("go"), { max_tokens: 12, stream_interval: 4, temperature: 0 });
    expect(chunks.map((chunk) => chunk.choices[0].token_ids.length)).toEqual([1, 4, 4, 3]);
  });
});

describe("models", () => {
  const trained = shared(() =>
    startTestServer({
      config: { loraRank: 2 },
      model: { checkpoint: { folder: LLAMA, weightType: "float32" } },
      extensions: [createTraining],
    }),
  );
  const ask = async (model: string | undefined, sampling_params: object, stream = false) => {
    const body = { token_ids: ids("go"), sampling_params: { seed: 1, max_tokens: 6, ...sampling_params }, model };
    if (stream) return trained.stream(body, PATH);
    const response = await trained.post(PATH, body);
    return { status: response.status, ...(await response.json()) };
  };

  it("are adapters by name", async () => {
    const folder = adapterFolder(mkdtempSync(join(tmpdir(), "adapter-")), "tuned");
    expect((await trained.post("/v1/load_lora_adapter", { lora_name: "tuned", lora_path: folder })).status).toBe(200);
    const base = await ask("fake", {});
    const tuned = await ask("tuned", {});
    expect([base.model, tuned.model]).toEqual(["fake", "tuned"]);
    expect(tuned.choices[0].token_ids).not.toEqual(base.choices[0].token_ids);
    expect((await ask(undefined, {})).choices).toEqual(base.choices);
    expect(await ask("nobody", {})).toMatchObject({ status: 404, error: { param: "model" } });
  });

  it("are policies by name and step, with their version and log probabilities in every choice", async () => {
    await trained.post("/v1/preview/models", { project: "p", name: "agent", base_model: "fake" });
    for (const name of ["agent", "agent@0"]) {
      const reply = await ask(name, { n: 2 });
      expectShape(TokenReply, Object.fromEntries(Object.entries(reply).filter(([key]) => key !== "status")));
      expect(reply.model).toBe("agent:step0");
      for (const choice of reply.choices) {
        expect(choice.policy_version).toBe(0);
        expect(choice.logprobs.content).toHaveLength(choice.token_ids.length);
      }
    }
    const chunks = await ask("agent", {}, true);
    for (const chunk of chunks) expectShape(TokenChunk, chunk);
    expect(chunks.map((chunk: Loose) => chunk.choices[0].policy_version)).toEqual(chunks.map(() => 0));
    expect(await ask("agent@7", {})).toMatchObject({ status: 404 });
  });
});

describe("refusals", () => {
  const sampling = (sampling_params: unknown) => ({ token_ids: [1, 2], sampling_params });
  it.each<[unknown, unknown]>([
    [{}, "body.token_ids"],
    [{ token_ids: [1] }, "body.sampling_params"],
    [{ token_ids: [], sampling_params: {} }, "body.token_ids"],
    [{ token_ids: "abc", sampling_params: {} }, "body.token_ids"],
    [{ token_ids: [1, "x"], sampling_params: {} }, "body.token_ids.1"],
    [{ token_ids: [-1], sampling_params: {} }, "token_ids"],
    [{ token_ids: [999], sampling_params: {} }, "token_ids"],
    [{ ...sampling({}), features: { mm_hashes: {} } }, "body.features"],
    [{ ...sampling({}), content_parts: [{ type: "image_url" }] }, "body.content_parts"],
    [{ ...sampling({}), cache_salt: "" }, "body.cache_salt"],
    [{ ...sampling({}), stream_options: { include_usage: true } }, "stream_options"],
    [sampling([]), "body.sampling_params"],
    [sampling({ temperature: 3 }), "temperature"],
    [sampling({ temperature: "hot" }), "body.sampling_params.temperature"],
    [sampling({ top_p: 0 }), "top_p"],
    [sampling({ max_tokens: 0 }), "max_tokens"],
    [sampling({ min_tokens: 9, max_tokens: 8 }), null],
    [sampling({ n: 0 }), null],
    [sampling({ stop: [""] }), null],
    [sampling({ logprobs: -2 }), "logprobs"],
    [sampling({ logprobs: 21 }), "logprobs"],
    [sampling({ prompt_logprobs: 21 }), "prompt_logprobs"],
    [sampling({ prompt_logprobs: "1" }), "prompt_logprobs"],
    [sampling({ logprob_token_ids: [5000] }), "logprob_token_ids"],
    [sampling({ allowed_token_ids: [] }), "allowed_token_ids"],
    [sampling({ logit_bias: { 5000: 1 } }), "logit_bias"],
    [sampling({ bad_words: [""] }), null],
    [sampling({ stream_interval: 0 }), "body.sampling_params.stream_interval"],
    [sampling({ structured_outputs: {} }), null],
    [sampling({ structured_outputs: { regex: "(" } }), "structured_outputs"],
    [sampling({ structured_outputs: { regex: "a", choice: ["b"] } }), null],
    [sampling({ repetition_detection: { max_pattern_size: 2 } }), null],
    [sampling({ thinking_token_budget: 5 }), "thinking_token_budget"],
    [sampling({ trace_decode_token_ids: [1] }), "body.sampling_params.trace_decode_token_ids"],
  ])("%j", async (body, param) => {
    for (const stream of [false, true]) {
      if (stream && param === "stream_options") continue;
      const response = await server.post(PATH, { ...(body as object), stream });
      const answer = await response.json();
      expect([response.status, answer.error?.param], JSON.stringify(answer)).toEqual([400, param]);
    }
  });

  it.each([2048, 5000])("a prompt of %d tokens, which leaves no room in the context", async (length) => {
    const refused = await server.post(PATH, { token_ids: new Array(length).fill(65), sampling_params: {} });
    const { error } = await refused.json();
    expect([refused.status, error.param]).toEqual([400, "input_tokens"]);
    expect(error.message).toMatch(/maximum context length is 2048 tokens/);
  });

  it("prompt_logprobs with a stream, which has no place for them", async () => {
    const refused = await server.post(PATH, { ...sampling({ prompt_logprobs: 1 }), stream: true });
    expect([refused.status, (await refused.json()).error.param]).toEqual([400, "prompt_logprobs"]);
  });

  it("callers without a token, and a full queue", async () => {
    const anonymous = await fetch(server.url + PATH, { method: "POST", body: "{}" });
    expect(anonymous.status).toBe(401);
    expect((await server.post(PATH, sampling({ n: 1100 }))).status).toBe(400);
  });

  it("takes null for what this model does not have", async () => {
    const nothing = { features: null, content_parts: null, kv_transfer_params: null, ec_transfer_params: null };
    const params = {
      max_tokens: 1,
      stop: null,
      bad_words: null,
      trace_decode_token_ids: null,
      structured_outputs: null,
    };
    expect((await generate(ids("go"), params, { ...nothing, assistant_tokens_mask: null })).choices).toHaveLength(1);
  });
});

describe("a client that leaves", () => {
  it.each([true, false])("ends its work before the next step (stream: %s)", async (stream) => {
    const slow = await startTestServer({ runner: { before: () => new Promise((resolve) => setTimeout(resolve, 1)) } });
    const gone = new AbortController();
    const pending = fetch(slow.url + PATH, {
      method: "POST",
      headers: { authorization: `Bearer ${API_KEY}`, "content-type": "application/json" },
      body: JSON.stringify({ token_ids: ids("go"), sampling_params: { n: 2, ignore_eos: true }, stream }),
      signal: gone.signal,
    }).then((response) => response.text());
    pending.catch(() => {});
    await expect.poll(() => slow.service.engine.stats().running).toBe(2);
    gone.abort();
    await expect(pending).rejects.toThrow();
    await expect.poll(() => slow.service.admission.active).toBe(0);
    await expect.poll(() => slow.service.engine.stats().running).toBe(0);
    const metrics = await (await slow.get("/metrics")).text();
    expect(metrics).toMatch(/vllm:request_success_total\{[^}]*finished_reason="abort"\} 2/);
    await slow.close();
  });
});
