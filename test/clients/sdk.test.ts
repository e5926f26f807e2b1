import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI, OpenAI as LangChainText } from "@langchain/openai";
import { generateObject, generateText, streamText } from "ai";
import OpenAI7 from "openai";
import OpenAI6 from "openai-v6";
import { describe, expect, it } from "vitest";
import { toolCallFormat } from "../../src/text/tools/tool-format.ts";
import { sharedServer } from "../support/shared-server.ts";
import { API_KEY, startTestServer, type TestServer } from "../support/test-server.ts";

const server = sharedServer();
const tools = sharedServer({
  config: { enableAutoToolChoice: true, toolCallParser: "hermes", reasoningContentAlias: true },
  model: {
    toolFormat: toolCallFormat("hermes"),
    reasoning: { start: "<think>", end: "</think>", assumed: false },
  },
});

const user = (content: string) => [{ role: "user" as const, content }];
const CALL = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>';
const add = {
  type: "function" as const,
  function: {
    name: "add",
    parameters: {
      type: "object",
      properties: { a: { type: "integer" }, b: { type: "integer" } },
      required: ["a", "b"],
      additionalProperties: false,
    },
  },
};

describe.each([
  ["openai 7", OpenAI7],
  ["openai 6", OpenAI6 as unknown as typeof OpenAI7],
])("%s", (_name, Client) => {
  const client = (target = server, maxRetries = 0) =>
    new Client({ baseURL: `${target.url}/v1`, apiKey: API_KEY, maxRetries });

  it("completes, lists and retrieves", async () => {
    const reply = await client().chat.completions.create({ model: "fake", messages: user("say:hello") });
    expect(reply.choices[0]!.message.content).toBe("hello");
    expect(reply._request_id).toBe(reply.id.replace("chatcmpl-", ""));
    const ids: string[] = [];
    for await (const model of client().models.list()) {
      ids.push(model.id);
    }
    expect(ids).toEqual(["fake", "fake-alias"]);
    expect((await client().models.retrieve("fake")).id).toBe("fake");
    const text = await client().completions.create({ model: "fake", prompt: "say:abc\n[assistant]" });
    expect(text.choices[0]!.text).toBe("abc");
  });

  it("streams, with its own helper too", async () => {
    const stream = await client().chat.completions.create({
      model: "fake",
      messages: user("say:grüß dich"),
      stream: true,
      stream_options: { include_usage: true },
      logprobs: true,
      top_logprobs: 2,
    });
    let text = "";
    let usage = 0;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage?.completion_tokens ?? usage;
    }
    expect(text).toBe("grüß dich");
    expect(usage).toBe(12);
    const runner = client().chat.completions.stream({ model: "fake", messages: user("say:again") });
    expect(await runner.finalContent()).toBe("again");
  });

  it("raises its own error classes", async () => {
    const bad = client().chat.completions.create({ model: "fake", messages: user("x"), temperature: 9 });
    await expect(bad).rejects.toMatchObject({
      status: 400,
      type: "BadRequestError",
      param: "temperature",
      name: "Error",
    });
    await expect(bad).rejects.toBeInstanceOf(Client.BadRequestError);
    await expect(client().chat.completions.create({ model: "nobody", messages: user("x") })).rejects.toBeInstanceOf(
      Client.NotFoundError,
    );
    const stranger = new Client({ baseURL: `${server.url}/v1`, apiKey: "wrong", maxRetries: 0 });
    await expect(stranger.models.list()).rejects.toBeInstanceOf(Client.AuthenticationError);
  });

  it("aborts when its consumer stops", async () => {
    const stream = await client().chat.completions.create({
      model: "fake",
      messages: user("go on"),
      stream: true,
      max_tokens: 1900,
    });
    for await (const _chunk of stream) {
      break;
    }
    await expect.poll(() => server.service.admission.active).toBe(0);
  });

  it("parses structured output", async () => {
    const reply = await client().chat.completions.create({
      model: "fake",
      messages: user("go on"),
      max_tokens: 300,
      response_format: {
        type: "json_schema",
        json_schema: {
          name: "n",
          schema: {
            type: "object",
            properties: { n: { type: "boolean" } },
            required: ["n"],
            additionalProperties: false,
          },
        },
      },
    });
    expect(typeof JSON.parse(reply.choices[0]!.message.content!).n).toBe("boolean");
  });

  it("calls tools, whole and streamed, chosen and forced", async () => {
    const body = { model: "fake", messages: user(`say:${CALL}`), tools: [add] };
    const reply = await client(tools).chat.completions.create(body);
    expect(reply.choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: {
        content: null,
        tool_calls: [{ type: "function", function: { name: "add", arguments: '{"a": 1, "b": 2}' } }],
      },
    });
    expect(reply.choices[0]!.message.tool_calls![0]!.id).toMatch(/^chatcmpl-tool-[0-9a-f]{32}$/);
    const streamed = client(tools).chat.completions.stream(body);
    const final = await streamed.finalChatCompletion();
    expect(final.choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: { tool_calls: [{ type: "function", function: { name: "add", arguments: '{"a": 1, "b": 2}' } }] },
    });
    const none = await client(tools).chat.completions.create({ ...body, tool_choice: "none" });
    expect(none.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: CALL, tool_calls: [] } });
    for (const tool_choice of ["required", { type: "function", function: { name: "add" } }] as const) {
      const forced = await client(tools).chat.completions.create({
        model: "fake",
        messages: user("go on"),
        tools: [add],
        tool_choice,
        parallel_tool_calls: false,
        max_tokens: 600,
        temperature: 0,
        // A babbling model would rather think for ever.
        chat_template_kwargs: { enable_thinking: false },
      } as Parameters<OpenAI7["chat"]["completions"]["create"]>[0] & { stream?: false });
      const call = forced.choices[0]!.message.tool_calls![0]! as { function: { name: string; arguments: string } };
      expect(call.function.name).toBe("add");
      expect(Object.keys(JSON.parse(call.function.arguments))).toEqual(["a", "b"]);
      expect(forced.choices[0]!.finish_reason).toBe(tool_choice === "required" ? "tool_calls" : "stop");
    }
  });
});

describe("reasoning", () => {
  const messages = user("say:<think>hm</think>done");

  it("is separated from the answer, whole and streamed, and hidden on request", async () => {
    const whole = await tools.chat({ messages, logprobs: true, return_token_ids: true });
    expect(whole.choices[0].message).toMatchObject({ content: "done", reasoning: "hm", reasoning_content: "hm" });
    // From where the start marker is complete to where the end marker is; a token is a byte here.
    expect(whole.usage.completion_tokens_details).toEqual({ reasoning_tokens: ">hm</think".length });
    const held = await tools.chat({ messages, stop: ["a stop string that is never said"] });
    expect(held.usage.completion_tokens_details).toEqual(whole.usage.completion_tokens_details);
    const plain = await tools.chat({ messages: user("say:done") });
    expect(plain.usage.completion_tokens_details).toEqual({ reasoning_tokens: 0 });
    const empty = await tools.chat({ messages: user("say:<think>") });
    expect(empty.choices[0].message).toMatchObject({ content: null, reasoning: null });
    const chunks = await tools.stream({ messages });
    const join = (key: string) => chunks.map((c) => c.choices[0]?.delta[key] ?? "").join("");
    expect(join("reasoning")).toBe("hm");
    expect(join("reasoning_content")).toBe("hm");
    expect(join("content")).toBe("done");
    const hidden = await tools.chat({ messages, include_reasoning: false, logprobs: true, return_token_ids: true });
    expect(hidden.choices[0]).toMatchObject({
      message: { content: "done", reasoning: null },
      logprobs: null,
      token_ids: null,
    });
    expect(hidden.usage.completion_tokens).toBe(whole.usage.completion_tokens);
    const hiddenChunks = await tools.stream({ messages, include_reasoning: false, logprobs: true });
    expect(JSON.stringify(hiddenChunks)).not.toMatch(/hm|"reasoning"/);
    expect(hiddenChunks.map((c) => c.choices[0]?.delta.content ?? "").join("")).toBe("done");
    const onlyThought = await tools.chat({ messages: user("say:<think>hm"), max_tokens: 9 });
    expect(onlyThought.choices[0].message).toMatchObject({ content: null, reasoning: "hm" });
  });

  it("is recognised by markers that are special tokens, while other special tokens stay hidden", async () => {
    const marked = await startTestServer({ model: { reasoning: { start: "<s>", end: "<pad>", assumed: false } } });
    try {
      const body = { messages: user("say:<s>hm<pad>done"), ignore_eos: true, max_tokens: 10 };
      const [hidden, shown] = [await marked.chat(body), await marked.chat({ ...body, skip_special_tokens: false })];
      expect(hidden.choices[0].message).toMatchObject({ reasoning: "hm", content: "done" });
      expect(shown.choices[0].message).toMatchObject({ reasoning: "hm", content: "done</s></s>" });
      const included = await marked.chat({ messages: body.messages, include_stop_str_in_output: true });
      expect(included.choices[0].message).toMatchObject({ reasoning: "hm", content: "done" });
    } finally {
      await marked.close();
    }
  });

  it("comes before structured output", async () => {
    const reply = await tools.chat({
      messages: user("say:<think>ok</think>"),
      chat_template: "[user]{{ messages[0].content }}\n[assistant]<think>",
      structured_outputs: { choice: ["yes"] },
      max_tokens: 60,
    });
    expect(reply.choices[0].message).toMatchObject({ reasoning: "ok", content: "yes" });
  });
});

describe("AI SDK", () => {
  const provider = (target: TestServer) =>
    createOpenAICompatible({ name: "flywheel", baseURL: `${target.url}/v1`, apiKey: API_KEY, includeUsage: true });

  it("generates, streams, reasons and calls tools", async () => {
    const model = provider(server)("fake");
    const { text, usage } = await generateText({ model, prompt: "say:hello", maxRetries: 0 });
    expect(text).toBe("hello");
    expect(usage.outputTokens).toBe(6);
    let streamed = "";
    const stream = streamText({ model, prompt: "say:in pieces", maxRetries: 0 });
    for await (const part of stream.textStream) {
      streamed += part;
    }
    expect(streamed).toBe("in pieces");
    expect((await stream.usage).outputTokens).toBe(10);
    const thought = await generateText({
      model: provider(tools)("fake"),
      prompt: "say:<think>hm</think>yes",
      maxRetries: 0,
    });
    expect(thought.reasoningText).toBe("hm");
    expect(thought.text).toBe("yes");
  });

  it("generates objects", async () => {
    const { jsonSchema } = await import("ai");
    const model = createOpenAICompatible({
      name: "flywheel",
      baseURL: `${server.url}/v1`,
      apiKey: API_KEY,
      supportsStructuredOutputs: true,
    })("fake");
    const schema = jsonSchema<{ yes: boolean }>({
      type: "object",
      properties: { yes: { type: "boolean" } },
      required: ["yes"],
      additionalProperties: false,
    });
    const { object } = await generateObject({ model, schema, prompt: "go on", maxOutputTokens: 300, maxRetries: 0 });
    expect(typeof object.yes).toBe("boolean");
  });
});

describe("LangChain", () => {
  const configuration = () => ({ baseURL: `${server.url}/v1` });

  it("invokes and streams chats, and completes texts", async () => {
    const chat = new ChatOpenAI({ model: "fake", apiKey: API_KEY, configuration: configuration(), maxRetries: 0 });
    expect((await chat.invoke("say:hello")).content).toBe("hello");
    let streamed = "";
    let total = 0;
    for await (const chunk of await chat.stream("say:in pieces")) {
      streamed += chunk.content;
      total = chunk.usage_metadata?.output_tokens ?? total;
    }
    expect(streamed).toBe("in pieces");
    expect(total).toBe(10);
    const text = new LangChainText({ model: "fake", apiKey: API_KEY, configuration: configuration(), maxRetries: 0 });
    expect(await text.invoke("say:abc\n[assistant]")).toBe("abc");
  });

  it("calls tools", async () => {
    const chat = new ChatOpenAI({
      model: "fake",
      apiKey: API_KEY,
      configuration: { baseURL: `${tools.url}/v1` },
      maxRetries: 0,
    });
    const reply = await chat.bindTools([add]).invoke(`say:${CALL}`);
    expect(reply.tool_calls).toMatchObject([{ name: "add", args: { a: 1, b: 2 } }]);
  });
});
