import { describe, expect, it } from "vitest";
import { sharedServer } from "../../support/shared-server.ts";
import { type LooseResponse, says } from "../../support/test-server.ts";

const server = sharedServer();
const json = async (response: Promise<LooseResponse>) => (await response).json();

describe("/tokenize and /detokenize", () => {
  it("counts what a chat is charged for", async () => {
    const messages = says("héllo");
    const reply = await json(server.post("/tokenize", { messages, return_token_strs: true }));
    const chat = await server.chat({ messages, return_token_ids: true });
    expect(reply.tokens).toEqual(chat.prompt_token_ids);
    expect(reply).toMatchObject({ count: chat.usage.prompt_tokens, max_model_len: 2048 });
    expect(reply.token_strs).toHaveLength(reply.count);
    expect(await json(server.post("/detokenize", { tokens: reply.tokens }))).toEqual({
      prompt: "[user]say:héllo\n[assistant]",
    });
  });

  it("writes nothing for ids that no token has", async () => {
    expect(await json(server.post("/detokenize", { tokens: [97, 999_999, 98] }))).toEqual({ prompt: "ab" });
  });

  it("takes a prompt and template fields", async () => {
    expect(await json(server.post("/tokenize", { prompt: "ab" }))).toEqual({
      count: 2,
      max_model_len: 2048,
      tokens: [97, 98],
      token_strs: null,
    });
    const body = { messages: says("x"), add_generation_prompt: false, chat_template: "{{ messages[0].role }}" };
    expect((await json(server.post("/tokenize", body))).count).toBe(4);
  });

  it("refuses mistakes", async () => {
    for (const [path, body, status] of [
      ["/tokenize", {}, 400],
      ["/tokenize", { prompt: 5 }, 400],
      ["/tokenize", { prompt: "x".repeat(1_048_577) }, 413],
      ["/tokenize", { messages: says("x".repeat(1_048_577)) }, 413],
      ["/tokenize", { prompt: "x", model: "nobody" }, 404],
      ["/tokenize", { messages: says("x"), continue_final_message: true }, 400],
      ["/tokenize", { messages: [{ role: "user", content: [{ type: "image_url" }] }] }, 400],
      ["/detokenize", { tokens: [-1] }, 400],
      ["/detokenize", {}, 400],
    ] as const) {
      expect((await server.post(path, body)).status, JSON.stringify(body)).toBe(status);
    }
  });
});
