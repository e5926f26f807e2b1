// Log probabilities of output and prompt.
import { describe, expect, it } from "vitest";
import { babble, sharedServer } from "../../support/shared-server.ts";
import { says } from "../../support/test-server.ts";

const server = sharedServer();

describe("log probabilities and ids", () => {
  it("gives one entry per token, the sampled one first", async () => {
    const reply = await server.chat({
      ...babble,
      logprobs: true,
      top_logprobs: 3,
      return_token_ids: true,
      max_tokens: 4,
    });
    const { logprobs, token_ids: ids } = reply.choices[0];
    expect(logprobs.content).toHaveLength(4);
    for (const [i, entry] of logprobs.content.entries()) {
      expect(entry.bytes).toEqual([ids[i]]);
      expect(entry.top_logprobs).toHaveLength(3);
      expect(entry.top_logprobs[0]).toEqual({ token: entry.token, logprob: entry.logprob, bytes: entry.bytes });
      expect(entry.logprob).toBe(Math.max(...entry.top_logprobs.map((t: { logprob: number }) => t.logprob)));
    }
    expect(reply.prompt_token_ids).toEqual([...Buffer.from("[user]go on\n[assistant]")]);
  });

  it("has empty alternatives for 0 and null, and writes ids when asked", async () => {
    for (const top of [undefined, 0, null]) {
      const reply = await server.chat({ messages: says("a"), logprobs: true, top_logprobs: top });
      expect(reply.choices[0].logprobs.content.map((e: { top_logprobs: unknown }) => e.top_logprobs)).toEqual([[], []]);
    }
    const reply = await server.chat({
      messages: says("a"),
      logprobs: true,
      top_logprobs: 1,
      return_tokens_as_token_ids: true,
    });
    expect(reply.choices[0].logprobs.content.map((e: { token: string }) => e.token)).toEqual([
      "token_id:97",
      "token_id:2",
    ]);
    expect(reply.choices[0].logprobs.content[0].top_logprobs[0].token).toBe("token_id:97");
  });

  it("gives the log probabilities of named ids instead of the most likely ones", async () => {
    const wanted = { logprobs: true, return_tokens_as_token_ids: true, max_tokens: 1, temperature: 0 };
    const all = await server.chat({ ...babble, ...wanted, top_logprobs: 20 });
    const [sampled, second] = all.choices[0].logprobs.content[0].top_logprobs;
    for (const top_logprobs of [0, 5, 200, null]) {
      const ids = [sampled, second].map(({ token }) => Number(token.slice("token_id:".length)));
      const body = { ...babble, ...wanted, top_logprobs, logprob_token_ids: [ids[1], 200, ids[0], 200] };
      const reply = await server.chat(body);
      const { top_logprobs: top } = reply.choices[0].logprobs.content[0];
      expect(top.map((entry: { token: string }) => entry.token)).toEqual([sampled.token, second.token, "token_id:200"]);
      expect(top.slice(0, 2)).toEqual([sampled, second]);
      const [, chunk] = await server.stream(body);
      expect(chunk.choices[0].logprobs).toEqual(reply.choices[0].logprobs);
    }
  });

  it.each([
    [{ logprob_token_ids: [1] }],
    [{ logprobs: true, logprob_token_ids: [256] }],
    [{ logprobs: true, logprob_token_ids: [-1] }],
    [{ logprobs: true, logprob_token_ids: Array.from({ length: 129 }, (_, id) => id) }],
  ])("refuses named ids: %j", async (fields) => {
    const refused = await server.post("/v1/chat/completions", { ...babble, ...fields });
    expect(refused.status).toBe(400);
    expect((await refused.json()).error.param).toBe("logprob_token_ids");
  });

  it("names ids in text completions, too", async () => {
    const body = {
      prompt: "go on",
      max_tokens: 1,
      logprobs: 5,
      logprob_token_ids: [200],
      return_tokens_as_token_ids: true,
    };
    const reply = await (await server.post("/v1/completions", body)).json();
    const { tokens, top_logprobs: top } = reply.choices[0].logprobs;
    expect(Object.keys(top[0])).toEqual([tokens[0], "token_id:200"]);
    const none = await server.post("/v1/completions", { ...body, echo: true, max_tokens: 0 });
    expect(none.status).toBe(400);
    expect((await none.json()).error.message).toEqual(expect.stringContaining("no output tokens"));
  });

  it("floors impossible values", async () => {
    const reply = await server.chat({ messages: says("a"), logprobs: true, allowed_token_ids: [98], max_tokens: 1 });
    expect(reply.choices[0].logprobs.content[0].logprob).toBeGreaterThanOrEqual(-9999);
    const grammar = await server.chat({
      ...babble,
      logprobs: true,
      top_logprobs: 5,
      structured_outputs: { choice: ["q"] },
      max_tokens: 2,
    });
    const first = grammar.choices[0].logprobs.content[0];
    expect(first.logprob).toBe(0);
    expect(first.top_logprobs.slice(1).every((t: { logprob: number }) => t.logprob === -9999)).toBe(true);
  });

  it("gives prompt log probabilities in the order clients see: own token first", async () => {
    const response = await server.post("/v1/chat/completions", { ...babble, prompt_logprobs: 2, max_tokens: 1 });
    const text = await response.text();
    const reply = JSON.parse(text);
    const prompt = [...Buffer.from("[user]go on\n[assistant]")];
    expect(reply.prompt_logprobs).toHaveLength(prompt.length);
    expect(reply.prompt_logprobs[0]).toBeNull();
    reply.prompt_logprobs
      .slice(1)
      .forEach((entry: Record<string, { rank: number; decoded_token: string }>, i: number) => {
        const own = entry[String(prompt[i + 1])]!;
        expect(own.rank).toBeGreaterThanOrEqual(1);
        expect(own.decoded_token).toBe(String.fromCharCode(prompt[i + 1]!));
        expect([2, 3]).toContain(Object.keys(entry).length);
      });
    const keysInOrder = [...text.slice(text.indexOf('"prompt_logprobs"')).matchAll(/\{"(\d+)":\{"logprob"/g)].map((m) =>
      Number(m[1]),
    );
    expect(keysInOrder).toEqual(prompt.slice(1));
  });
});
