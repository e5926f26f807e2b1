// POST /v1/messages over HTTP: translation, events, errors, refusals. The unmodified SDK is in test/clients.
import { describe, expect, it, vi } from "vitest";
import { MessageReply } from "../../../src/api/dialects/messages/messages.schema.ts";
import { toolCallFormat } from "../../../src/text/tools/tool-format.ts";
import { expectShape, sharedServer } from "../../support/shared-server.ts";
import {
  API_KEY,
  type Loose,
  looseFetch,
  startTestServer,
  TEMPLATE,
  type TestServer,
} from "../../support/test-server.ts";

const template = TEMPLATE.replace(
  "{{ m.content }}",
  "{% if m.reasoning %}({{ m.reasoning }}){% endif %}" +
    "{% for c in m.tool_calls %}<{{ c.function.name }} {{ c.function.arguments | tojson }}>{% endfor %}" +
    "{% if m.tool_call_id %}<{{ m.tool_call_id }}>{% endif %}{{ m.content }}",
);
const server = sharedServer({
  config: { enableAutoToolChoice: true, toolCallParser: "hermes" },
  model: { toolFormat: toolCallFormat("hermes"), reasoning: { start: "<think>", end: "</think>", assumed: false } },
  templates: new Map([["default", template]]),
});

const asked = (content: unknown, more: object = {}) => ({
  model: "fake",
  max_tokens: 300,
  messages: [{ role: "user", content }],
  ...more,
});
const create = async (body: object, on: TestServer = server): Promise<Loose> => {
  const response = await on.post("/v1/messages", body);
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return JSON.parse(text);
};
const refuse = async (body: unknown, on: TestServer = server): Promise<Loose> => {
  const response = await on.post("/v1/messages", body);
  const text = await response.text();
  expect(response.status, text).toBeGreaterThanOrEqual(400);
  const reply = JSON.parse(text);
  expect(Object.keys(reply)).toEqual(["type", "error", "request_id"]);
  expect(reply.type).toBe("error");
  expect(reply.request_id).toBe(response.headers.get("x-request-id"));
  return { status: response.status, ...reply.error };
};
const events = async (body: object, on: TestServer = server): Promise<Loose[]> => {
  const response = await on.post("/v1/messages", { ...body, stream: true });
  return (await response.text())
    .split("\n\n")
    .filter((block) => block !== "")
    .map((block) => {
      const [name, data] = block.split("\n");
      const event = JSON.parse(data!.replace(/^data: /, ""));
      expect(name).toBe(`event: ${event.type}`);
      return event;
    });
};
const promptOf = async (body: object): Promise<string> => {
  const generate = vi.spyOn(server.service.engine, "generate");
  try {
    await create(body);
    return server.service.text.tokenizer.decode([...generate.mock.lastCall![0].promptTokenIds]);
  } finally {
    generate.mockRestore();
  }
};

const add = {
  name: "add",
  input_schema: {
    type: "object",
    properties: { a: { type: "integer" } },
    required: ["a"],
    additionalProperties: false,
  },
};
const CALL = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>';

describe("a whole message", () => {
  it("has its text, its end and its usage", async () => {
    const message = await create(asked("say:hello"));
    expectShape(MessageReply, message);
    expect(message).toMatchObject({
      type: "message",
      role: "assistant",
      model: "fake",
      content: [{ type: "text", text: "hello" }],
      stop_reason: "end_turn",
      stop_sequence: null,
    });
    expect(message.id).toMatch(/^msg_[0-9a-f]{32}$/);
    const again = await create(asked("say:hello"));
    const { input_tokens, cache_read_input_tokens, output_tokens } = again.usage;
    expect(cache_read_input_tokens).toBeGreaterThan(0);
    expect(input_tokens + cache_read_input_tokens).toBe("[user]say:hello\n[assistant]".length);
    expect(output_tokens).toBe(6);
  });

  it("says how it ended", async () => {
    expect(await create(asked("say:hello", { max_tokens: 2 }))).toMatchObject({ stop_reason: "max_tokens" });
    const stopped = await create(asked("say:one two three", { stop_sequences: ["two", "three"] }));
    expect(stopped).toMatchObject({
      content: [{ text: "one " }],
      stop_reason: "stop_sequence",
      stop_sequence: "two",
    });
  });

  it("has thinking and calls as blocks", async () => {
    const message = await create(asked(`say:<think>hm</think>Well.${CALL}`, { tools: [add] }));
    expectShape(MessageReply, message);
    expect(message.content).toMatchObject([
      { type: "thinking", thinking: "hm", signature: "" },
      { type: "text", text: "Well." },
      { type: "tool_use", name: "add", input: { a: 1 } },
    ]);
    expect(message.content[2].id).toMatch(/^toolu_[0-9a-f]{32}_2$/);
    expect(message.stop_reason).toBe("tool_use");
  });

  it("keeps the numbers of arguments as the model wrote them", async () => {
    const call = '<tool_call>{"name": "add", "arguments": {"a": 1234567890123456789}}</tool_call>';
    const response = await server.post("/v1/messages", asked(`say:${call}`, { tools: [add] }));
    expect(await response.text()).toContain('"input":{"a":1234567890123456789}');
  });

  it("ends thinking at its budget", async () => {
    const thinking = { type: "enabled", budget_tokens: 3 };
    const { content } = await create(asked("say:<think>abcdef</think>answer", { thinking }));
    expect(content[0]).toMatchObject({ type: "thinking", thinking: "abc" });
    const plain = await startTestServer();
    try {
      expect(await create(asked("say:hi", { thinking }), plain)).toMatchObject({ content: [{ text: "hi" }] });
    } finally {
      await plain.close();
    }
  });

  it.each([
    [{ type: "any" }, 1],
    [{ type: "tool", name: "add", disable_parallel_tool_use: true }, 1],
  ])("is forced to call: %j", async (tool_choice, calls) => {
    const thinking = { type: "disabled" };
    const body = asked("go on", { tools: [add], tool_choice, thinking, temperature: 0, max_tokens: 900 });
    const { content } = await create(body);
    expect(content.length).toBeGreaterThanOrEqual(calls);
    expect(content[0]).toMatchObject({ type: "tool_use", name: "add", input: { a: expect.anything() } });
  });

  it("calls nothing under none, and once without parallel calls", async () => {
    const none = await create(asked(`say:${CALL}`, { tools: [add], tool_choice: { type: "none" } }));
    expect(none).toMatchObject({ content: [{ type: "text", text: CALL }], stop_reason: "end_turn" });
    const tool_choice = { type: "auto", disable_parallel_tool_use: true };
    const once = await create(asked(`say:${CALL}${CALL}`, { tools: [add], tool_choice }));
    expect(once.content).toHaveLength(1);
  });

  it("continues a message of the assistant", async () => {
    const messages = [
      { role: "user", content: "go on" },
      { role: "assistant", content: "say:rest\n[assistant]re" },
    ];
    const message = await create({ model: "fake", max_tokens: 50, messages });
    expect(message.content).toMatchObject([{ text: "st" }]);
  });
});

describe("blocks", () => {
  it("become messages of a chat, also those of tools", async () => {
    const prompt = await promptOf({
      model: "fake",
      max_tokens: 50,
      system: [{ type: "text", text: "rules", cache_control: { type: "ephemeral" } }],
      messages: [
        { role: "user", content: "one" },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "hm", signature: "s" },
            { type: "redacted_thinking", data: "x" },
            { type: "text", text: "two" },
            { type: "tool_use", id: "t1", name: "add", input: { a: 1 } },
            { type: "tool_use", id: "t2", name: "add", input: {} },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "t1", content: "three" },
            { type: "tool_result", tool_use_id: "t2", content: [{ type: "text", text: "four" }], is_error: true },
            { type: "text", text: "say:done" },
          ],
        },
      ],
    });
    expect(prompt).toBe(
      '[system]rules\n[user]one\n[assistant](hm)<add {"a": 1}><add {}>two\n[tool]<t1>three\n[tool]<t2>four\n' +
        "[user]say:done\n[assistant]",
    );
  });

  it("are counted as the prompt has them", async () => {
    const body = asked("say:x", { tools: [add], system: "rules" });
    const { max_tokens: _, ...prompt } = body;
    const counted = await server.post("/v1/messages/count_tokens", prompt);
    const { usage } = await create(body);
    expect(await counted.json()).toEqual({ input_tokens: usage.input_tokens + usage.cache_read_input_tokens });
    const long = await server.post("/v1/messages/count_tokens", asked("x".repeat(3000)));
    expect((await long.json()).input_tokens).toBeGreaterThan(3000);
    const bad = await server.post("/v1/messages/count_tokens", asked([{ type: "image" }]));
    expect((await bad.json()).error.type).toBe("invalid_request_error");
  });

  it("are counted without tools that the model does not see", async () => {
    const hiding = await startTestServer({ config: { excludeToolsWhenToolChoiceNone: true } });
    const { max_tokens: _, ...prompt } = asked("say:x", { tools: [add], tool_choice: { type: "none" } });
    const count = async (body: object) =>
      (await (await hiding.post("/v1/messages/count_tokens", body)).json()).input_tokens;
    const { usage } = await create({ ...prompt, max_tokens: 5 }, hiding);
    expect(await count(prompt)).toBe(usage.input_tokens + usage.cache_read_input_tokens);
    expect(await count(prompt)).toBe(await count({ ...prompt, tools: [] }));
    await hiding.close();
  });

  it("have the priority of X-Vllm-Priority", async () => {
    const first = await startTestServer({ config: { schedulingPolicy: "fcfs" } });
    const sent = (value: string) => first.post("/v1/messages", asked("say:x"), { "x-vllm-priority": value });
    expect((await sent("0")).status).toBe(200);
    const refused = await sent("5");
    expect(refused.status).toBe(400);
    expect((await refused.json()).error.message).toContain("priority");
    await first.close();
  });

  it.each([
    [[{ type: "image", source: {} }], /messages\.0\.content\.0: .*reads text only/],
    [[{ type: "document", source: {} }], /send its text/],
    [[{ type: "strange" }], /use text, thinking, tool_use/],
    [[{ type: "tool_use", id: "t", name: "f", input: {} }], /"tool_use" are not supported/],
    [[{ type: "tool_result", content: "x" }], /tool_use_id: expected a string/],
    [[{ type: "tool_result", tool_use_id: "t", content: [{ type: "image" }] }], /reads text only/],
    [[{ type: "tool_result", tool_use_id: "t", content: 5 }], /a string or a list/],
    [[5], /valid dictionary/],
    [5, /content/],
  ])("%j is refused", async (content, message) => {
    expect(await refuse(asked(content))).toMatchObject({
      status: 400,
      type: "invalid_request_error",
      message: expect.stringMatching(message),
    });
  });
});

describe("a stream", () => {
  it("has its events in order, and the same message as without", async () => {
    const body = asked(`say:<think>hm</think>Hi.${CALL}`, { tools: [add], temperature: 0 });
    const all = await events(body);
    const merged = all.map(({ type }) => type).filter((type, index, types) => type !== types[index - 1]);
    const block = ["content_block_start", "content_block_delta", "content_block_stop"];
    expect(merged).toEqual(["message_start", "ping", ...block, ...block, ...block, "message_delta", "message_stop"]);
    const content: Loose[] = [];
    for (const event of all) {
      if (event.type === "content_block_start") content[event.index] = { ...event.content_block, input: "" };
      if (event.type !== "content_block_delta") continue;
      const { text = "", thinking = "", partial_json = "" } = event.delta;
      content[event.index].text = (content[event.index].text ?? "") + text;
      content[event.index].thinking = (content[event.index].thinking ?? "") + thinking;
      content[event.index].input += partial_json;
    }
    const whole = await create(body);
    expect(content).toMatchObject([
      { type: "thinking", thinking: "hm" },
      { type: "text", text: "Hi." },
      { type: "tool_use", name: "add", input: '{"a": 1}' },
    ]);
    expect(all[0].message).toMatchObject({ content: [], stop_reason: null, usage: { output_tokens: 0 } });
    expect(all.at(-2)).toMatchObject({ delta: { stop_reason: whole.stop_reason, stop_sequence: null } });
    expect(all.at(-2).usage.output_tokens).toBe(whole.usage.output_tokens);
  });

  it("ends with an error event when the engine fails", async () => {
    let steps = 0;
    const failing = await startTestServer({
      runner: {
        before: () => {
          if (++steps > 4) throw new Error("the step fails");
        },
      },
    });
    try {
      expect((await events(asked("say:hello"), failing)).at(-1)).toMatchObject({
        type: "error",
        error: { type: "api_error" },
      });
      expect(failing.service.admission.active).toBe(0);
    } finally {
      await failing.close();
    }
  });

  it("stops the work when its client leaves", async () => {
    const controller = new AbortController();
    const response = await fetch(`${server.url}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": API_KEY, "content-type": "application/json" },
      body: JSON.stringify(asked("go on", { stream: true, max_tokens: 1500 })),
      signal: controller.signal,
    });
    await response.body!.getReader().read();
    controller.abort();
    await expect.poll(() => server.service.admission.active).toBe(0);
  });
});

describe("access and refusals", () => {
  it("takes the token from either header", async () => {
    const send = (headers: Record<string, string>) =>
      looseFetch(`${server.url}/v1/messages`, {
        method: "POST",
        headers: { "content-type": "application/json", "anthropic-version": "2023-06-01", ...headers },
        body: JSON.stringify(asked("say:hi")),
      });
    expect((await send({ "x-api-key": API_KEY })).status).toBe(200);
    expect((await send({ authorization: `Bearer ${API_KEY}` })).status).toBe(200);
    const stranger = await send({ "x-api-key": "wrong" });
    expect(stranger.status).toBe(401);
    expect(await stranger.json()).toMatchObject({ type: "error", error: { type: "authentication_error" } });
    expect((await send({})).status).toBe(401);
    expect((await looseFetch(`${server.url}/v1/models`, { headers: { "x-api-key": API_KEY } })).status).toBe(200);
  });

  it.each([
    [{ messages: [] }, /at least one message/],
    [{ max_tokens: undefined }, /max_tokens: missing/],
    [{ max_tokens: 0 }, /max_tokens/],
    [{ temperature: 9 }, /temperature/],
    [{ stop_sequences: [""] }, /empty string/],
    [{ tools: [{ type: "web_search_20250305", name: "web_search" }] }, /"web_search_20250305" are not offered/],
    [{ tools: [{ name: "f" }] }, /input_schema/],
    [{ tools: [{ input_schema: {} }] }, /needs a name/],
    [{ tools: [add], tool_choice: { type: "tool" } }, /needs a name/],
    [{ tools: [add], tool_choice: { type: "tool", name: "nope" } }, /not in tools/],
    [{ tool_choice: { type: "any" } }, /needs tools/],
    [{ mcp_servers: [{ url: "x" }] }, /MCP/],
    [{ messages: [{ role: "user", content: "x".repeat(5000) }] }, /context length/],
    [
      { messages: [{ role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: {} }] }] },
      /send the results/,
    ],
  ])("refuses %j", async (change, message) => {
    expect(await refuse({ ...asked("say:x"), ...change })).toMatchObject({
      status: 400,
      type: "invalid_request_error",
      message: expect.stringMatching(message),
    });
  });

  it("does not know a model, in its own words", async () => {
    expect(await refuse(asked("x", { model: "nobody" }))).toMatchObject({ status: 404, type: "not_found_error" });
  });

  it("survives deep, long and strange input", async () => {
    const deep = `${"[".repeat(10_000)}${"]".repeat(10_000)}`;
    expect(await refuse(`{"messages":${deep}}`)).toMatchObject({
      status: 400,
      message: expect.stringContaining("deep"),
    });
    const many = Array.from({ length: 1000 }, (_, i) => ({ role: "user", content: `${i}` }));
    expect((await refuse({ ...asked("x"), messages: many })).status).toBe(400);
    for (const messages of [5, null, "x", [[]], [null], [{ role: "nobody", content: "x" }], [{ role: "user" }]]) {
      expect((await refuse({ ...asked("x"), messages })).status).toBe(400);
    }
    expect(await create(asked("say:still here"))).toMatchObject({ stop_reason: "end_turn" });
  });
});
