// The whole tool loop with unmodified clients: the model calls, the client runs the function and sends the result back,
// the model answers from it. The fake model says what the last "say:" in its prompt tells it to, which in the second
// round stands in the tool's result: a final answer proves that the result arrived.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import OpenAI7 from "openai";
import OpenAI6 from "openai-v6";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { GenerateRequest } from "../../src/engine/contract.ts";
import { toolCallFormat } from "../../src/text/tools/tool-format.ts";
import { ByteTokenizer } from "../support/byte-tokenizer.ts";
import { API_KEY, startTestServer, TEMPLATE, type TestServer } from "../support/test-server.ts";

/** Shows calls as the model writes them, and which call a result belongs to. */
const template = TEMPLATE.replace(
  "{{ m.content }}",
  "{% for c in m.tool_calls %}<{{ c.id }} {{ c.function.name }} {{ c.function.arguments | tojson }}>{% endfor %}" +
    "{% if m.tool_call_id %}<{{ m.tool_call_id }}>{% endif %}{{ m.content }}",
);

let server: TestServer;
let prompts: string[] = [];
beforeAll(async () => {
  server = await startTestServer({
    config: { enableAutoToolChoice: true, toolCallParser: "hermes" },
    model: { toolFormat: toolCallFormat("hermes") },
    templates: new Map([["default", template]]),
  });
  const { engine } = server.service;
  const generate = engine.generate.bind(engine);
  engine.generate = (request: GenerateRequest) => {
    prompts.push(new ByteTokenizer().decode(request.promptTokenIds));
    return generate(request);
  };
});
beforeEach(() => {
  prompts = [];
});
afterAll(() => server.close());

const call = (name: string, args: unknown) =>
  `<tool_call>${JSON.stringify({ name, arguments: args })}</tool_call>`.replaceAll("\n", "");
const TWO = `say:${call("add", { a: 1, b: 2 })}${call("add", { a: 30, b: 4 })}`;
const parameters = {
  type: "object",
  properties: { a: { type: "integer" }, b: { type: "integer" } },
  required: ["a", "b"],
  additionalProperties: false,
};
const sum = ({ a, b }: { a: number; b: number }) => `say:The sum is ${a + b}.`;

/** The second prompt has both calls, each with its own result, in order. */
function expectBothResultsInPrompt(): void {
  expect(prompts).toHaveLength(2);
  const [calls, ...results] = prompts[1]!.split("\n").slice(-4, -1);
  const ids = [...calls!.matchAll(/<(chatcmpl-tool-\w+) add (\{.*?\})>/g)];
  expect(ids.map((match) => JSON.parse(match[2]!))).toEqual([
    { a: 1, b: 2 },
    { a: 30, b: 4 },
  ]);
  expect(results).toEqual([
    `[tool]<${ids[0]![1]}>${sum({ a: 1, b: 2 })}`,
    `[tool]<${ids[1]![1]}>${sum({ a: 30, b: 4 })}`,
  ]);
}

describe.each([
  ["openai 7", OpenAI7],
  ["openai 6", OpenAI6 as unknown as typeof OpenAI7],
])("%s", (_name, Client) => {
  const client = () => new Client({ baseURL: `${server.url}/v1`, apiKey: API_KEY, maxRetries: 0 });
  const runnable = {
    type: "function" as const,
    function: {
      name: "add",
      parameters,
      parse: (text: string) => JSON.parse(text),
      function: sum,
      description: "adds",
    },
  };
  const messages = [{ role: "user" as const, content: TWO }];

  it.each([false, true])("reaches the answer with its own runner (stream: %s)", async (stream) => {
    const runner = stream
      ? client().chat.completions.runTools({ model: "fake", messages, tools: [runnable], stream })
      : client().chat.completions.runTools({ model: "fake", messages, tools: [runnable] });
    expect(await runner.finalContent()).toBe("The sum is 34.");
    expectBothResultsInPrompt();
  });

  it("reaches the answer in a manual loop that begins with a forced call", async () => {
    const tools = [{ type: "function" as const, function: { name: "add", parameters } }];
    const first = await client().chat.completions.create({
      model: "fake",
      messages: [{ role: "user", content: "go on" }],
      tools,
      tool_choice: { type: "function", function: { name: "add" } },
      temperature: 0,
      max_tokens: 600,
    });
    const { message } = first.choices[0]!;
    const [made] = message.tool_calls as { id: string; function: { arguments: string } }[];
    const result = sum(JSON.parse(made!.function.arguments));
    const last = await client().chat.completions.create({
      model: "fake",
      messages: [
        { role: "user", content: "go on" },
        message,
        { role: "tool", tool_call_id: made!.id, content: result },
      ],
      tools,
    });
    expect(last.choices[0]).toMatchObject({
      finish_reason: "stop",
      message: { content: result.slice(4), tool_calls: [] },
    });
    expect(prompts[1]).toContain(`<${made!.id} add `);
  });
});

describe("AI SDK", () => {
  const settings = () => ({
    model: createOpenAICompatible({ name: "flywheel", baseURL: `${server.url}/v1`, apiKey: API_KEY })("fake"),
    prompt: TWO,
    maxRetries: 0,
    stopWhen: stepCountIs(4),
    tools: {
      add: tool({
        description: "adds",
        inputSchema: jsonSchema<{ a: number; b: number }>(parameters as never),
        execute: async (input: { a: number; b: number }) => sum(input),
      }),
    },
  });

  it("reaches the answer in two steps", async () => {
    const { text, steps } = await generateText(settings());
    expect(text).toBe("The sum is 34.");
    expect(steps.map((step) => step.finishReason)).toEqual(["tool-calls", "stop"]);
    expect(steps[0]!.toolResults.map((result) => result.output)).toEqual(["say:The sum is 3.", "say:The sum is 34."]);
    expectBothResultsInPrompt();
  });

  it("reaches the answer when it streams", async () => {
    const stream = streamText(settings());
    let text = "";
    for await (const part of stream.textStream) text += part;
    expect(text).toBe("The sum is 34.");
    expect((await stream.steps).map((step) => step.finishReason)).toEqual(["tool-calls", "stop"]);
    expectBothResultsInPrompt();
  });
});

it("a schema's numbers are printed as written and obeyed as numbers", async () => {
  const schema = `{"type":"object","properties":{"a":{"type":"integer","minimum":3.0,"maximum":3e0}},"required":["a"]}`;
  const reply = await server.post(
    "/v1/chat/completions",
    `{"messages":[{"role":"user","content":"go on"}],"temperature":0,"max_tokens":100,"tool_choice":"required",
      "parallel_tool_calls":false,"tools":[{"type":"function","function":{"name":"f","parameters":${schema}}}]}`,
  );
  const [made] = (await reply.json()).choices[0].message.tool_calls;
  expect(JSON.parse(made.function.arguments).a).toBe(3);
  expect(prompts[0]).toContain('"minimum": 3.0, "maximum": 3.0');
});

it.each(["required", { type: "function", function: { name: "add" } }])(
  "a forced call that max_tokens cuts leaves nothing of it in the content (%j)",
  async (tool_choice) => {
    const body = {
      messages: [{ role: "user", content: "go on" }],
      tools: [{ type: "function", function: { name: "add", parameters } }],
      tool_choice,
    };
    for (const max_tokens of [1, 5, 14, 40]) {
      const [choice] = (await server.chat({ ...body, max_tokens })).choices;
      expect(choice).toMatchObject({ finish_reason: "length", message: { role: "assistant" } });
      expect(choice.message.content ?? "").toBe("");
      const chunks = await server.stream({ ...body, max_tokens });
      expect(chunks.map((chunk) => chunk.choices[0].delta.content ?? "").join("")).toBe("");
    }
  },
);

describe("a server that does not parse tool calls", () => {
  const tools = [{ type: "function", function: { name: "add", parameters } }];
  const messages = [{ role: "user", content: "say:hi" }];

  it("answers and tells its operator once per client", async () => {
    const plain = await startTestServer({ config: { apiKey: [API_KEY, "second-key"] } });
    try {
      const warn = vi.spyOn(plain.service.log, "warn");
      await plain.chat({ messages, tools, tool_choice: "none" });
      await plain.chat({ messages, tools: [] });
      expect(warn).not.toHaveBeenCalled();
      for (const key of [API_KEY, API_KEY, "second-key", API_KEY]) {
        const headers = { authorization: `Bearer ${key}` };
        expect((await plain.post("/v1/chat/completions", { messages, tools }, headers)).status).toBe(200);
      }
      expect(warn).toHaveBeenCalledTimes(2);
      expect(warn.mock.calls[0]![1]).toMatchObject({ toolCalls: expect.stringContaining("--tool-call-parser") });
    } finally {
      await plain.close();
    }
  });

  it("leaves the choice between calls and an answer of the wanted shape", async () => {
    const schema = {
      type: "object",
      properties: { n: { type: "integer" } },
      required: ["n"],
      additionalProperties: false,
    };
    const response_format = { type: "json_schema", json_schema: { name: "n", schema } };
    const ask = async (text: string, more: object = {}) =>
      (await server.chat({ messages: [{ role: "user", content: `say:${text}` }], tools, response_format, ...more }))
        .choices[0];
    const written = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>';
    expect(await ask(written)).toMatchObject({
      finish_reason: "tool_calls",
      message: { content: null, tool_calls: [{ function: { name: "add", arguments: '{"a": 1, "b": 2}' } }] },
    });
    expect(await ask('{"n": 5}')).toMatchObject({
      finish_reason: "stop",
      message: { content: '{"n": 5}', tool_calls: [] },
    });
    expect((await ask('{"n": 5}', { tool_choice: "none" })).message.content).toBe('{"n": 5}');
  });

  it.each([
    ["bundled", TEMPLATE, "flywheel serve --enable-auto-tool-choice --tool-call-parser NAME"],
    ["org/name", `${TEMPLATE}{# <tool_call> #}`, "flywheel serve org/name --enable-auto-tool-choice"],
    ["/models/secret", `${TEMPLATE}{# <tool_call> #}`, "flywheel serve MODEL --enable-auto-tool-choice"],
  ])("names the command that parses the calls of %s", async (model, source, command) => {
    const plain = await startTestServer({ config: { model }, templates: new Map([["default", source]]) });
    try {
      for (const tool_choice of ["auto", "required", { type: "function", function: { name: "add" } }]) {
        const refused = await plain.post("/v1/chat/completions", { messages, tools, tool_choice });
        expect(refused.status).toBe(400);
        expect((await refused.json()).error.message).toMatch(new RegExp(`Start it with: ${command}$`));
      }
    } finally {
      await plain.close();
    }
  });

  it("hints at its start if the model's template knows tools", async () => {
    expect(server.service.toolCallHint).toBeNull();
    for (const [source, hint] of [
      [TEMPLATE, expect.stringContaining("--enable-auto-tool-choice")],
      ["{{ messages[0].content }}", null],
    ]) {
      const plain = await startTestServer({ templates: new Map([["default", source]]) });
      expect(plain.service.toolCallHint).toEqual(hint);
      await plain.close();
    }
  });
});
