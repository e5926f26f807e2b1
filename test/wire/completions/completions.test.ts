import { describe, expect, it } from "vitest";
import { CompletionChunk, CompletionReply } from "../../../src/api/dialects/completions/completions.schema.ts";
import { expectShape, sharedServer } from "../../support/shared-server.ts";
import type { LooseResponse } from "../../support/test-server.ts";

const server = sharedServer();
const json = async (response: Promise<LooseResponse>) => (await response).json();
const complete = (body: object) => json(server.post("/v1/completions", body));
const order = (text: string) => `say:${text}\n[assistant]`;

describe("/v1/completions", () => {
  it("completes a text", async () => {
    const reply = await complete({ prompt: order("hello") });
    expectShape(CompletionReply, reply);
    expect(reply).toMatchObject({
      id: expect.stringMatching(/^cmpl-/),
      object: "text_completion",
      model: "fake",
      choices: [
        {
          index: 0,
          text: "hello",
          logprobs: null,
          finish_reason: "stop",
          stop_reason: null,
          token_ids: null,
          prompt_logprobs: null,
          prompt_token_ids: null,
        },
      ],
      usage: { prompt_tokens: order("hello").length, completion_tokens: 6 },
    });
  });

  it("takes several prompts, as texts or ids, with n", async () => {
    const ids = (text: string) => [...Buffer.from(text)];
    const forms = [{ prompt: [order("ab"), order("cd")] }, { prompt: [ids(order("ab")), ids(order("cd"))] }];
    for (const form of forms) {
      const reply = await complete({ ...form, n: 2, temperature: 0 });
      expect(reply.choices.map((c: { index: number; text: string }) => [c.index, c.text])).toEqual([
        [0, "ab"],
        [1, "ab"],
        [2, "cd"],
        [3, "cd"],
      ]);
      expect(reply.usage).toMatchObject({ prompt_tokens: 2 * order("ab").length, completion_tokens: 12 });
    }
    const one = await complete({ prompt: ids(order("ab")), return_token_ids: true });
    expect(one.choices[0]).toMatchObject({ text: "ab", token_ids: [97, 98, 2], prompt_token_ids: ids(order("ab")) });
  });

  it("gives 16 tokens by default", async () => {
    expect((await complete({ prompt: "go" })).usage.completion_tokens).toBe(16);
  });

  it("has the older logprob format, offsets into the text", async () => {
    const { logprobs } = (await complete({ prompt: order("abc"), logprobs: 2 })).choices[0];
    expect(logprobs.tokens).toEqual(["a", "b", "c", "</s>"]);
    expect(logprobs.text_offset).toEqual([0, 1, 2, 3]);
    const wide = (await complete({ prompt: order("😀b"), logprobs: 0 })).choices[0].logprobs;
    expect(wide.tokens).toEqual(["", "", "", "😀", "b", "</s>"]);
    expect(wide.text_offset).toEqual([0, 0, 0, 0, 1, 2]);
    expect(logprobs.token_logprobs.every((x: number) => x <= 0 && x > -1)).toBe(true);
    for (const [i, top] of logprobs.top_logprobs.entries()) {
      expect(top[logprobs.tokens[i]]).toBe(logprobs.token_logprobs[i]);
      expect([2, 3]).toContain(Object.keys(top).length);
    }
  });

  it("echoes the prompt with its log probabilities, alone when max_tokens is 0", async () => {
    const prompt = order("x");
    const both = (await complete({ prompt, echo: true, logprobs: 1 })).choices[0];
    expect(both.text).toBe(`${prompt}x`);
    expect(both.logprobs.tokens.join("")).toBe(`${prompt}x</s>`);
    expect(both.logprobs.token_logprobs[0]).toBeNull();
    expect(both.logprobs.top_logprobs[0]).toBeNull();
    expect(both.logprobs.token_logprobs.slice(1).every((v: number | null) => v !== null)).toBe(true);
    const alone = await complete({ prompt, echo: true, logprobs: 0, max_tokens: 0 });
    expect(alone.choices[0]).toMatchObject({ text: prompt, finish_reason: "length", stop_reason: null });
    expect(alone.choices[0].logprobs.tokens.join("")).toBe(prompt);
    expect(alone.usage.completion_tokens).toBe(0);
  });

  it.each([
    ["in the middle", 4, " end"],
    ["within a character", 6, "\ufffd: end"],
    ["nowhere", 16, "start 😀: end"],
  ])("echoes what truncation leaves of the prompt when it cuts %s", async (_where, truncate_prompt_tokens, kept) => {
    const prompt = "start 😀: end";
    for (const form of [prompt, [...Buffer.from(prompt)]]) {
      const body = { prompt: form, truncate_prompt_tokens, echo: true, logprobs: 0, max_tokens: 0 };
      const { text, logprobs } = (await complete(body)).choices[0];
      // The end of a character that was cut has no text of its own.
      expect(text).toEqual(kept);
      expect(logprobs.tokens.join("")).toEqual(kept.replace("\ufffd", ""));
      expect(logprobs.tokens).toHaveLength(Math.min(truncate_prompt_tokens, Buffer.byteLength(prompt)));
    }
  });

  it("puts prompt logprobs inside the choice", async () => {
    const reply = await complete({ prompt: "abc", prompt_logprobs: 1, max_tokens: 1 });
    expect(reply.choices[0].prompt_logprobs).toHaveLength(3);
    expect(reply.choices[0].prompt_logprobs[0]).toBeNull();
  });

  it("fills prompt_logprobs of an echo with logprobs", async () => {
    const [echoed] = (await complete({ prompt: "abc", echo: true, logprobs: 1, max_tokens: 1 })).choices;
    const [asked] = (await complete({ prompt: "abc", prompt_logprobs: 1, max_tokens: 1 })).choices;
    expect(echoed.prompt_logprobs).toEqual(asked.prompt_logprobs);
  });

  it("sends the prompt's ids once with an echo, and the fingerprint last", async () => {
    const chunks = await server.stream({ prompt: order("ab"), echo: true, prompt_logprobs: 0 }, "/v1/completions");
    expect(chunks[0].choices[0].prompt_token_ids).toEqual([...Buffer.from(order("ab"))]);
    expect(chunks.slice(1).map((c) => c.choices[0].prompt_token_ids)).toEqual([null, null]);
    expect(chunks.map((c) => typeof c.system_fingerprint)).toEqual(["undefined", "undefined", "string"]);
    for (const chunk of chunks) expect(chunk.choices[0]).not.toHaveProperty("prompt_logprobs");
  });

  it("cuts the side that truncation_side names", async () => {
    const kept = async (more: object) =>
      (await complete({ prompt: "abcdef", echo: true, max_tokens: 0, truncate_prompt_tokens: 2, ...more })).choices[0]
        .text;
    expect(await kept({})).toBe("ef");
    expect(await kept({ truncation_side: "right" })).toBe("ab");
    expect((await server.post("/v1/completions", { prompt: "a", truncation_side: "up" })).status).toBe(400);
  });

  it("counts the usage of every chunk for its own prompt", async () => {
    const prompt = [order("ab"), order("cdefg")];
    const chunks = await server.stream(
      { prompt, stream_options: { include_usage: true, continuous_usage_stats: true } },
      "/v1/completions",
    );
    const promptTokens = (index: number) =>
      chunks.filter((c) => c.choices[0]?.index === index).map((c) => c.usage.prompt_tokens);
    for (const index of [0, 1]) expect(new Set(promptTokens(index))).toEqual(new Set([prompt[index]!.length]));
    expect(chunks.at(-1).usage.prompt_tokens).toBe(prompt.join("").length);
  });

  it("streams every choice of every prompt", async () => {
    const chunks = await server.stream(
      {
        prompt: [order("ab"), order("cde")],
        stream_options: { include_usage: true },
        return_token_ids: true,
        logprobs: 0,
      },
      "/v1/completions",
    );
    for (const chunk of chunks) expectShape(CompletionChunk, chunk);
    const first = chunks.find((c) => c.choices[0]?.index === 1);
    expect(first.choices[0].prompt_token_ids).toEqual([...Buffer.from(order("cde"))]);
    const withIds = chunks.filter((c) => (c.choices[0]?.prompt_token_ids ?? null) !== null);
    expect(withIds).toHaveLength(2);
    const text = (index: number) =>
      chunks
        .filter((c) => c.choices[0]?.index === index)
        .map((c) => c.choices[0].text)
        .join("");
    expect(text(0)).toBe("ab");
    expect(text(1)).toBe("cde");
    const offsets = chunks.filter((c) => c.choices[0]?.index === 1).flatMap((c) => c.choices[0].logprobs.text_offset);
    expect(offsets).toEqual([0, 1, 2, 3]);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 7 } });
  });

  it.each([
    [{}, "body.prompt"],
    [{ prompt: "" }, "prompt"],
    [{ prompt: ["a", ""] }, null],
    [{ prompt: [] }, "prompt"],
    [{ prompt: ["a", 5] }, expect.stringMatching(/^body.prompt/)],
    [{ prompt: [999] }, "prompt"],
    [{ prompt: [-1] }, "prompt"],
    [{ prompt: "a", suffix: "b" }, "suffix"],
    [{ prompt: "a", max_tokens: 0 }, "max_tokens"],
    [{ prompt: "a", max_tokens: -1 }, "max_tokens"],
    [{ prompt: "a", logprobs: 21 }, "logprobs"],
    [{ prompt: "a", logprobs: -1 }, "logprobs"],
    [{ prompt: "a", temperature: 3 }, "temperature"],
    [{ prompt: "x".repeat(2100) }, "input_tokens"],
    [{ prompt: "xx", max_tokens: 2047 }, "input_tokens"],
    [{ prompt: "xx", max_tokens: 2048 }, "input_text"],
    [{ prompt: "x".repeat(20_000) }, "input_text"],
  ])("refuses %j", async (body, param) => {
    for (const stream of [false, true]) {
      const response = await server.post("/v1/completions", { ...body, stream });
      expect(response.status).toBe(400);
      expect((await response.json()).error.param).toEqual(param);
    }
  });
});
