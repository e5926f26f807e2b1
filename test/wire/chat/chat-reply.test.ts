// Whole replies: every key of them, and where ids come from.
import { describe, expect, it } from "vitest";
import { ChatReply } from "../../../src/api/dialects/chat/chat.schema.ts";
import { babble, expectShape, sharedServer } from "../../support/shared-server.ts";
import { says } from "../../support/test-server.ts";

const server = sharedServer();

describe("reply", () => {
  it("has every key, null where nothing was asked for", async () => {
    const before = Math.floor(Date.now() / 1000);
    const reply = await server.chat({ messages: says("hello") });
    expectShape(ChatReply, reply);
    expect(Object.keys(reply)).toEqual([
      "id",
      "object",
      "created",
      "model",
      "choices",
      "service_tier",
      "system_fingerprint",
      "usage",
      "prompt_logprobs",
      "prompt_token_ids",
      "kv_transfer_params",
    ]);
    expect(reply).toMatchObject({
      id: expect.stringMatching(/^chatcmpl-[0-9a-f-]{36}$/),
      object: "chat.completion",
      model: "fake",
      service_tier: null,
      prompt_logprobs: null,
      prompt_token_ids: null,
      kv_transfer_params: null,
      system_fingerprint: expect.stringMatching(/^flywheel-\d+\.\d+\.\d+-[0-9a-f]{8}$/),
    });
    expect(reply.created).toBeGreaterThanOrEqual(before);
    expect(reply.created).toBeLessThanOrEqual(Date.now() / 1000);
    expect(reply.choices).toEqual([
      {
        index: 0,
        message: {
          role: "assistant",
          content: "hello",
          refusal: null,
          annotations: null,
          audio: null,
          function_call: null,
          tool_calls: [],
          reasoning: null,
        },
        logprobs: null,
        finish_reason: "stop",
        stop_reason: null,
        token_ids: null,
      },
    ]);
    const prompt = "[user]say:hello\n[assistant]".length;
    expect(reply.usage).toEqual({
      prompt_tokens: prompt,
      total_tokens: prompt + 6,
      completion_tokens: 6,
      prompt_tokens_details: { cached_tokens: expect.any(Number) },
    });
  });

  it("answers an immediate end with empty content and one token", async () => {
    const reply = await server.chat({ messages: says("") });
    expect(reply.choices[0]).toMatchObject({ message: { content: "" }, finish_reason: "stop", stop_reason: null });
    expect(reply.usage.completion_tokens).toBe(1);
  });

  it("reports cached tokens, and keeps prefixes with different salts apart", async () => {
    const messages = says("x".repeat(80));
    const first = await server.chat({ messages, cache_salt: "a" });
    const again = await server.chat({ messages, cache_salt: "a" });
    const other = await server.chat({ messages, cache_salt: "b" });
    const cached = [first, again, other].map((r) => r.usage.prompt_tokens_details.cached_tokens);
    expect(cached[0]).toBe(0);
    // All of the prompt's blocks of 16, but never its last token.
    expect(cached[1]).toBe(16 * Math.floor((again.usage.prompt_tokens - 1) / 16));
    expect(cached[1]).toBeGreaterThan(0);
    expect(cached[2]).toBe(0);
    const logprobs = { messages, cache_salt: "a", prompt_logprobs: 0 };
    const streamed = (await server.stream({ ...logprobs, stream_options: { include_usage: true } })).at(-1);
    for (const { usage } of [await server.chat(logprobs), streamed]) {
      expect(usage.prompt_tokens_details.cached_tokens).toBe(0);
    }
  });

  it("gives n choices in order and counts usage as the dialect does", async () => {
    const reply = await server.chat({ ...babble, temperature: 1, seed: 5, n: 3 });
    expect(reply.choices.map((c: { index: number }) => c.index)).toEqual([0, 1, 2]);
    expect(reply.usage.completion_tokens).toBe(36);
    const singles = await Promise.all([5, 6, 7].map((seed) => server.chat({ ...babble, temperature: 1, seed })));
    expect(reply.choices.map((c: { message: unknown }) => c.message)).toEqual(singles.map((s) => s.choices[0].message));
    const greedy = await server.chat({ ...babble, n: 2 });
    expect(greedy.choices[0].message).toEqual(greedy.choices[1].message);
  });

  it("gives the same reply for the same seed, even the largest", async () => {
    const raw = (seed: string) =>
      server
        .post("/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":20,"seed":${seed}}`)
        .then((r) => r.json())
        .then((r) => r.choices[0].message.content);
    expect(await raw("9223372036854775807")).toBe(await raw("9223372036854775807"));
    expect(await raw("9223372036854775807")).not.toBe(await raw("9223372036854775806"));
  });

  it("names the model first served, whatever alias was used", async () => {
    expect((await server.chat({ ...babble, model: "fake-alias" })).model).toBe("fake");
    const missing = await server.post("/v1/chat/completions", { ...babble, model: "nobody" });
    expect(missing.status).toBe(404);
    expect((await missing.json()).error).toEqual({
      message: "The model `nobody` does not exist.",
      type: "NotFoundError",
      param: "model",
      code: 404,
    });
  });
});

describe("request ids", () => {
  it("takes the header, then the body, then a UUID, and returns it in the header", async () => {
    const both = await server.post(
      "/v1/chat/completions",
      { ...babble, request_id: "body" },
      { "x-request-id": "head" },
    );
    expect(both.headers.get("x-request-id")).toBe("head");
    expect((await both.json()).id).toBe("chatcmpl-head");
    const body = await server.post("/v1/chat/completions", { ...babble, request_id: "body" });
    expect(body.headers.get("x-request-id")).toBe("body");
    expect((await body.json()).id).toBe("chatcmpl-body");
    const streamed = await server.post(
      "/v1/chat/completions",
      { ...babble, stream: true, request_id: "s" },
      { origin: "http://x" },
    );
    expect(streamed.headers.get("x-request-id")).toBe("s");
    expect(streamed.headers.get("access-control-allow-origin")).toBe("*");
    expect(streamed.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    await streamed.text();
    const none = await server.post("/v1/chat/completions", babble);
    expect((await none.json()).id).toBe(`chatcmpl-${none.headers.get("x-request-id")}`);
    const odd = await server.post("/v1/chat/completions", { ...babble, request_id: "é\n" });
    expect((await odd.json()).id).toBe("chatcmpl-é\n");
    const spaced = await server.post(
      "/v1/chat/completions",
      { ...babble, request_id: "b" },
      { "x-request-id": "my id" },
    );
    expect((await spaced.json()).id).toBe("chatcmpl-my id");
    const long = await server.post("/v1/chat/completions", { ...babble, request_id: "x".repeat(1025) });
    expect(long.status).toBe(400);
    expect((await long.json()).error.param).toBe("request_id");
    const same = await Promise.all([1, 2, 3].map(() => server.chat({ ...babble, request_id: "same" })));
    expect(same.map((r) => r.id)).toEqual(["chatcmpl-same", "chatcmpl-same", "chatcmpl-same"]);
  });
});
