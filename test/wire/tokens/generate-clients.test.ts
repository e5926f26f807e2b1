// Bodies of /inference/v1/generate as two trainers send them, and what their clients read of the replies.
import { describe, expect, it } from "vitest";
import { sharedServer } from "../../support/shared-server.ts";
import type { Loose } from "../../support/test-server.ts";

const server = sharedServer();
const prompt = [...Buffer.from("say:ok\n[assistant]")];
const post = async (body: object, headers: Record<string, string> = {}): Promise<Loose> => {
  const response = await server.post("/inference/v1/generate", body, headers);
  expect(response.status, await response.clone().text()).toBe(200);
  return response.json();
};

describe("prime-rl", () => {
  it("samples through its renderer's client", async () => {
    const sampling_params = {
      temperature: 1.0,
      top_p: 1.0,
      max_tokens: 4096,
      min_p: 0.0,
      top_k: -1,
      min_tokens: 0,
      repetition_penalty: 1.0,
      routed_experts_prompt_start: 0,
      stop_token_ids: [2, 100],
      logprobs: 1,
      skip_special_tokens: false,
    };
    const body = { model: "fake", token_ids: prompt, sampling_params, cache_salt: "42", priority: 0 };
    const headers = { "x-session-id": "rollout-1", "x-data-parallel-rank": "0" };
    const reply = await post(body, headers);
    const [choice] = reply.choices;
    expect(reply.request_id).toBeTruthy();
    expect(choice.token_ids).toEqual([...Buffer.from("ok"), 2]);
    const logprobs = choice.logprobs.content.map(({ logprob }: Loose) => logprob);
    expect(logprobs).toHaveLength(3);
    for (const logprob of logprobs) expect(logprob).toBeLessThanOrEqual(0);
    expect(choice.finish_reason).toBe("stop");
    expect(choice.routed_experts ?? null).toBeNull();
  });

  it("finds the longest prompt in the list of models", async () => {
    const { data } = await (await server.get("/v1/models")).json();
    expect(data.find(({ id }: Loose) => id === "fake").max_model_len).toBe(2048);
  });

  it("scores a prompt by the first value of each entry", async () => {
    const sampling_params = { max_tokens: 1, temperature: 1.0, top_p: 1.0, prompt_logprobs: 1 };
    const text = await (
      await server.post("/inference/v1/generate", { model: "fake", token_ids: prompt, sampling_params })
    ).text();
    const { prompt_logprobs } = JSON.parse(text);
    expect(prompt_logprobs).toHaveLength(prompt.length);
    // Python keeps the order of the text, so the prompt's own token must stand first there. JSON.parse would sort the keys.
    const list = text.slice(text.indexOf('"prompt_logprobs":[') + '"prompt_logprobs":['.length);
    const firstKeys = [...list.matchAll(/(?:^|,)(?:null|\{"(\d+)":\{[^{}]*\}(?:,"\d+":\{[^{}]*\})*\})/g)].map(
      ([, id]) => id,
    );
    expect(firstKeys.slice(1, prompt.length).map(Number)).toEqual(prompt.slice(1));
  });
});

describe("SkyRL", () => {
  it("generates for a batch, one request per prompt", async () => {
    const sampling_params = {
      min_tokens: 1,
      skip_special_tokens: true,
      include_stop_str_in_output: true,
      max_tokens: 1024,
      temperature: 1.0,
      top_p: 1.0,
      top_k: -1,
      min_p: 0.0,
      logprobs: 1,
      stop: ["</answer>"],
    };
    const body = { sampling_params, model: "fake", token_ids: prompt, cache_salt: "step-3" };
    const [choice] = (await post(body, { "x-session-id": "s" })).choices;
    expect(choice.token_ids).toEqual([...Buffer.from("ok"), 2]);
    expect(choice.logprobs.content).toHaveLength(3);
    expect(choice.finish_reason).toBe("stop");
    const silent = await post({ ...body, sampling_params: { ...sampling_params, logprobs: null, stop: null } });
    expect(silent.choices[0].logprobs).toBeNull();
  });

  it("samples with the prompt's log probabilities", async () => {
    const sampling_params = {
      n: 4,
      logprobs: 0,
      output_kind: 2,
      prompt_logprobs: 5,
      temperature: 0.7,
      max_tokens: 5,
      seed: 3,
      top_k: -1,
      top_p: 1.0,
      stop: ["\n\n"],
      stop_token_ids: [2],
    };
    const reply = await post({ sampling_params, model: "fake", token_ids: prompt });
    expect(reply.choices).toHaveLength(4);
    for (const { token_ids, logprobs } of reply.choices) expect(logprobs.content).toHaveLength(token_ids.length);
    expect(reply.prompt_logprobs[0]).toBeNull();
    for (const [i, id] of prompt.slice(1).entries()) {
      const position = reply.prompt_logprobs[i + 1];
      expect(position[id].logprob).toBeLessThanOrEqual(0);
      expect([5, 6]).toContain(Object.keys(position).length);
    }
  });
});
