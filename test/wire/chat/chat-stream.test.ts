// Streamed replies.
import { describe, expect, it } from "vitest";
import { ChatChunk } from "../../../src/api/dialects/chat/chat.schema.ts";
import { babble, expectShape, sharedServer } from "../../support/shared-server.ts";
import { says, startTestServer } from "../../support/test-server.ts";

const server = sharedServer();

describe("stream", () => {
  it("has the shapes of the dialect, key for key", async () => {
    const chunks = await server.stream({ messages: says("hey"), stream_options: { include_usage: true } });
    for (const chunk of chunks) expectShape(ChatChunk, chunk);
    const { id, created } = chunks[0];
    const head = { id, object: "chat.completion.chunk", created, model: "fake" };
    const prompt = "[user]say:hey\n[assistant]".length;
    expect(chunks).toEqual([
      {
        ...head,
        choices: [{ index: 0, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null }],
        prompt_token_ids: null,
      },
      ...["h", "e", "y"].map((content) => ({
        ...head,
        choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null, token_ids: null }],
      })),
      {
        ...head,
        choices: [
          {
            index: 0,
            delta: { content: "" },
            logprobs: null,
            finish_reason: "stop",
            stop_reason: null,
            token_ids: null,
          },
        ],
      },
      {
        ...head,
        choices: [],
        system_fingerprint: expect.any(String),
        usage: {
          prompt_tokens: prompt,
          total_tokens: prompt + 4,
          completion_tokens: 4,
          prompt_tokens_details: { cached_tokens: expect.any(Number) },
        },
      },
    ]);
  });

  it("carries ids and logprobs, ahead of text that is held back", async () => {
    const chunks = await server.stream({
      messages: says("abSTOPc"),
      stop: "STOP",
      return_token_ids: true,
      logprobs: true,
      top_logprobs: 1,
    });
    expect(chunks[0].prompt_token_ids).toEqual([...Buffer.from("[user]say:abSTOPc\n[assistant]")]);
    expect(chunks.slice(1).every((chunk) => !("prompt_token_ids" in chunk))).toBe(true);
    const choices = chunks.slice(1).map((chunk) => chunk.choices[0]);
    expect(choices.map((c) => c.delta.content)).toEqual(["", "", "", "a", "b", ""]);
    expect(choices.flatMap((c) => c.token_ids)).toEqual([...Buffer.from("abSTOP")]);
    expect(choices.every((c) => c.logprobs.content.length === c.token_ids.length)).toBe(true);
    expect(choices.at(-1)).toMatchObject({ finish_reason: "stop", stop_reason: "STOP" });
  });

  it("counts usage on every chunk when asked, per choice", async () => {
    const chunks = await server.stream({
      ...babble,
      n: 2,
      temperature: 1,
      stream_options: { include_usage: true, continuous_usage_stats: true },
    });
    expect(chunks.every((chunk) => chunk.usage !== undefined)).toBe(true);
    for (const index of [0, 1]) {
      const counts = chunks.filter((c) => c.choices[0]?.index === index).map((c) => c.usage.completion_tokens);
      expect(counts[0]).toBe(0);
      expect(counts).toEqual([...counts].sort((a, b) => a - b));
      expect(counts.at(-1)).toBe(12);
    }
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 24 } });
    const without = await server.stream({ ...babble, stream_options: { continuous_usage_stats: true } });
    expect(without.every((chunk) => chunk.usage === undefined)).toBe(true);
  });

  it("counts usage on every chunk of every stream when the operator wants it", async () => {
    const forcing = await startTestServer({
      config: { enableForceIncludeUsage: true, enableServerLoadTracking: false },
    });
    try {
      const { messages, ...settings } = babble;
      const chat = await forcing.stream({ messages, ...settings });
      const text = await forcing.stream({ prompt: "go on", ...settings }, "/v1/completions");
      for (const chunks of [chat, text]) {
        const counts = chunks.map((chunk) => chunk.usage.completion_tokens);
        expect(counts).toEqual([...counts].sort((a, b) => a - b));
        expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 12 } });
      }
      expect(await (await forcing.get("/load")).json()).toEqual({ server_load: 0 });
    } finally {
      await forcing.close();
    }
  });

  it("joins to the text of the whole reply, whatever the options", async () => {
    const text = "Grüße 👩‍👩‍👧 and\ttabs — done. STOP not said";
    for (const options of [
      {},
      { stop: ["STOP", "done"] },
      { stop: "é" },
      { n: 3, seed: 1 },
      { skip_special_tokens: false },
      { stop: "e", min_tokens: 5 },
    ]) {
      const body = { messages: says(text), ...options };
      const whole = await server.chat(body);
      const chunks = await server.stream(body);
      for (const choice of whole.choices) {
        const own = chunks.filter((c) => c.choices[0]?.index === choice.index).map((c) => c.choices[0]);
        expect(own.map((c) => c.delta.content ?? "").join("")).toBe(choice.message.content);
        expect(own.at(-1)).toMatchObject({ finish_reason: choice.finish_reason, stop_reason: choice.stop_reason });
        expect(own.filter((c) => c.finish_reason !== null)).toHaveLength(1);
      }
    }
  });

  it("sends the echo after the role", async () => {
    const messages = [
      { role: "user", content: "hi" },
      { role: "assistant", content: "so" },
    ];
    const chunks = await server.stream({
      messages,
      add_generation_prompt: false,
      continue_final_message: true,
      echo: true,
      max_tokens: 1,
    });
    expect(chunks.slice(0, 2).map((c) => c.choices[0].delta)).toEqual([
      { role: "assistant", content: "" },
      { content: "so" },
    ]);
  });
});
