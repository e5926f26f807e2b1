// Routes that clients of vLLM know beside chat and completions: batches, /invocations, /tokenizer_info.
import { describe, expect, it } from "vitest";
import { ChatReply } from "../../../src/api/dialects/chat/chat.schema.ts";
import { expectShape, sharedServer } from "../../support/shared-server.ts";
import { says, startTestServer, TEMPLATE } from "../../support/test-server.ts";

const server = sharedServer({ config: { enableTokenizerInfoEndpoint: true } });

describe("/v1/chat/completions/batch", () => {
  const batch = (body: object) => server.post("/v1/chat/completions/batch", body);

  it("answers each conversation with one choice, in order", async () => {
    const messages = [says("first"), says("two"), says("third")];
    const wanted = { logprobs: true, top_logprobs: 1, return_token_ids: true, temperature: 0 };
    const reply = await (await batch({ messages, ...wanted })).json();
    expectShape(ChatReply, reply);
    const choices = reply.choices as { index: number; message: { content: string } }[];
    expect(choices.map((choice) => [choice.index, choice.message.content])).toEqual([
      [0, "first"],
      [1, "two"],
      [2, "third"],
    ]);
    const alone = await Promise.all(messages.map((one) => server.chat({ messages: one, ...wanted })));
    expect(choices).toEqual(alone.map((one, index) => ({ ...one.choices[0], index })));
    const total = (key: string) => alone.reduce((sum, one) => sum + one.usage[key], 0);
    expect(reply.usage).toMatchObject({
      prompt_tokens: total("prompt_tokens"),
      completion_tokens: total("completion_tokens"),
      total_tokens: total("total_tokens"),
    });
  });

  it("holds every conversation to the same constraint", async () => {
    const structured_outputs = { choice: ["yes", "no"] };
    const reply = await (await batch({ messages: [says("maybe"), says("never")], structured_outputs })).json();
    for (const { message } of reply.choices) expect(["yes", "no"]).toContain(message.content);
  });

  it.each([
    [{ messages: says("x") }, "body.messages.0"],
    [{ messages: [] }, "messages"],
    [{ messages: [[]] }, "messages"],
    [{ messages: [says("x"), [{ role: 5 }]] }, "body.messages.1.0.role"],
    [{ messages: [says("x")], stream: true }, "stream"],
    [{ messages: [says("x")], n: 2 }, "n"],
    [{ messages: [says("x")], tools: [{ type: "function", function: { name: "f" } }] }, "tools"],
    [{ messages: [says("x")], use_beam_search: true }, "use_beam_search"],
    [{ messages: [says("x"), says("x".repeat(2100))] }, "input_tokens"],
    [{ messages: [says("x")], temperature: 5 }, "temperature"],
  ])("refuses %j", async (body, param) => {
    const refused = await batch(body);
    expect(refused.status).toBe(400);
    expect((await refused.json()).error.param).toEqual(param);
  });

  it("needs a model that is served, and room for all conversations", async () => {
    expect((await batch({ messages: [says("x")], model: "nobody" })).status).toBe(404);
    expect((await batch({ messages: Array.from({ length: 1100 }, () => says("x")) })).status).toBe(400);
  });
});

describe("/invocations", () => {
  const invoke = async (body: object) => {
    const response = await server.post("/invocations", body);
    return { status: response.status, reply: await response.json() };
  };

  it("answers a chat or a text completion by the shape of the body", async () => {
    const chat = await invoke({ messages: says("hello") });
    expect(chat.reply).toMatchObject({ object: "chat.completion", choices: [{ message: { content: "hello" } }] });
    const text = await invoke({ prompt: "say:hello\n[assistant]" });
    expect(text.reply).toMatchObject({ object: "text_completion", choices: [{ text: "hello" }] });
    const chunks = await server.stream({ messages: says("ab") }, "/invocations");
    expect(chunks.map((chunk) => chunk.choices[0].delta.content).join("")).toBe("ab");
  });

  it("refuses a body that is neither, and callers without a token", async () => {
    const { status, reply } = await invoke({ input: "x" });
    expect(status).toBe(400);
    expect(reply.error.message).toEqual(expect.stringMatching(/messages.*prompt/));
    const stranger = await server.post("/invocations", { messages: says("x") }, { authorization: "Bearer nobody" });
    expect(stranger.status).toBe(401);
  });
});

describe("/tokenizer_info", () => {
  it("describes the tokenizer, with the template that is used", async () => {
    const response = await server.get("/tokenizer_info");
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({
      bos_token: "<s>",
      eos_token: "</s>",
      tokenizer_class: "PreTrainedTokenizerFast",
      chat_template: TEMPLATE,
    });
  });

  it("writes tokens of the configuration as their text", async () => {
    const tokenizerConfig = {
      tokenizer_class: "LlamaTokenizer",
      eos_token: { __type: "AddedToken", content: "</s>", lstrip: false },
      additional_special_tokens: [{ content: "<a>", lstrip: false }, "<b>"],
      added_tokens_decoder: { "2": { content: "</s>", special: true } },
      vocab_file: "somewhere/spiece.model",
      model_max_length: 2048,
    };
    const other = await startTestServer({ config: { enableTokenizerInfoEndpoint: true }, tokenizerConfig });
    try {
      expect(await (await other.get("/tokenizer_info")).json()).toEqual({
        tokenizer_class: "LlamaTokenizer",
        bos_token: "<s>",
        eos_token: "</s>",
        additional_special_tokens: ["<a>", "<b>"],
        added_tokens_decoder: { "2": "</s>" },
        model_max_length: 2048,
        chat_template: TEMPLATE,
      });
    } finally {
      await other.close();
    }
  });

  it("is there only on request, and for callers with a token", async () => {
    expect((await server.get("/tokenizer_info", { authorization: "Bearer nobody" })).status).toBe(401);
    const plain = await startTestServer();
    try {
      expect((await plain.get("/tokenizer_info")).status).toBe(404);
    } finally {
      await plain.close();
    }
  });
});
