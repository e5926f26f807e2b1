// thinking_token_budget: a thought that is too long is ended.
import { describe, expect, it } from "vitest";
import { reasoningStyle } from "../../../src/text/reasoning.ts";
import { sharedServer } from "../../support/shared-server.ts";
import { says, startTestServer } from "../../support/test-server.ts";

const server = sharedServer({ model: { reasoning: reasoningStyle("think", null) } });
const thought = "<think>abcdef</think>answer";

describe("thinking_token_budget", () => {
  it("ends the thought after that many tokens", async () => {
    const reply = await server.chat({ messages: says(thought), thinking_token_budget: 3, return_token_ids: true });
    expect(reply.choices[0].message.reasoning).toBe("abc");
    const text = Buffer.from(reply.choices[0].token_ids).toString();
    expect(text.startsWith("<think>abc</think>")).toBe(true);
    const chunks = await server.stream({ messages: says(thought), thinking_token_budget: 3 });
    expect(chunks.map((chunk) => chunk.choices[0].delta.reasoning ?? "").join("")).toBe("abc");
  });

  it("ends it before a constraint begins, and against bad words", async () => {
    // The prompt opens the thought, and the model goes on behind it.
    const chat_template = "[user]{{ messages[0].content }}\n[assistant]<think>";
    const body = { messages: says("<think>abcdef"), chat_template, thinking_token_budget: 2, bad_words: ["<"] };
    const reply = await server.chat({ ...body, structured_outputs: { choice: ["yes"] } });
    expect(reply.choices[0].message).toMatchObject({ reasoning: "ab", content: "yes" });
  });

  it("does not change shorter thoughts, or replies without a thought", async () => {
    for (const budget of [6, 100, -1, null]) {
      const { message } = (await server.chat({ messages: says(thought), thinking_token_budget: budget })).choices[0];
      expect(message).toMatchObject({ reasoning: "abcdef", content: "answer" });
    }
    const plain = await server.chat({ messages: says("answer"), thinking_token_budget: 0 });
    expect(plain.choices[0].message).toMatchObject({ reasoning: null, content: "answer" });
  });

  it("holds in text completions", async () => {
    const prompt = `say:${thought}\n[assistant]`;
    const reply = await (await server.post("/v1/completions", { prompt, thinking_token_budget: 1 })).json();
    expect(reply.choices[0].text).toBe("<think>a</think>");
  });

  it("holds for token ids", async () => {
    const token_ids = [...Buffer.from(`say:${thought}\n[assistant]`)];
    const sampling_params = { thinking_token_budget: 1, max_tokens: 16 };
    const reply = await (await server.post("/inference/v1/generate", { token_ids, sampling_params })).json();
    expect(Buffer.from(reply.choices[0].token_ids).toString()).toBe("<think>a</think>");
  });

  it.each([-2, 0.6])("refuses %d", async (budget) => {
    const refused = await server.post("/v1/chat/completions", { messages: says("x"), thinking_token_budget: budget });
    expect(refused.status).toBe(400);
    expect((await refused.json()).error.param).toBe("body.thinking_token_budget");
  });

  it("is refused where reasoning is not parsed", async () => {
    const plain = await startTestServer();
    try {
      const refused = await plain.post("/v1/chat/completions", { messages: says("x"), thinking_token_budget: 1 });
      expect(refused.status).toBe(400);
      expect((await refused.json()).error.param).toBe("thinking_token_budget");
    } finally {
      await plain.close();
    }
  });
});
