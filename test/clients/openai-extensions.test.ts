// What OpenAI's newest clients send beyond the interface, with the unmodified SDK: refused by default, and works with
// --enable-openai-extensions.
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { ResponseObject } from "../../src/api/dialects/responses/responses.schema.ts";
import { TOOL_CALL_FORMATS, type ToolCallFormat } from "../../src/grammar/constraint.ts";
import { expectShape, sharedServer } from "../support/shared-server.ts";
import { API_KEY, type Loose, startTestServer, TEMPLATE, type TestServer } from "../support/test-server.ts";

const reasoning = { start: "<think>", end: "</think>", assumed: false };
/** Shows the effort, whether thinking is off, and calls. */
const template =
  "{{ reasoning_effort }}{{ enable_thinking }}" +
  TEMPLATE.replace(
    "{{ m.content }}",
    "{% for c in m.tool_calls %}<{{ c.function.name }} {{ c.function.arguments | tojson }}>{% endfor %}{{ m.content }}",
  );
const extended = {
  config: { enableAutoToolChoice: true, toolCallParser: "hermes", enableOpenaiExtensions: true },
  model: { toolFormat: "hermes" as const, reasoning },
  templates: new Map([["default", template]]),
};
const server = sharedServer(extended);
const plain = sharedServer({ ...extended, config: { ...extended.config, enableOpenaiExtensions: false } });

const sdk = (target: TestServer = server) =>
  new OpenAI({ baseURL: `${target.url}/v1`, apiKey: API_KEY, maxRetries: 0 });
const user = (content: string) => [{ role: "user" as const, content }];
const call = (name: string, args: string) => `<tool_call>{"name": "${name}", "arguments": ${args}}</tool_call>`;

const grammar = {
  syntax: "lark" as const,
  definition: 'start: "SELECT " COLUMN (", " COLUMN)* ";"\nCOLUMN: /[a-c"]{1,4}/',
};
const MATCHING = /^SELECT [a-c"]{1,4}(, [a-c"]{1,4})*;$/;
const regex = { syntax: "regex" as const, definition: '[xyz]{3,5}"\\n[0-9]{2}' };
const add = { type: "function" as const, function: { name: "add", parameters: { type: "object", properties: {} } } };
const run = { type: "custom" as const, custom: { name: "run", description: "Runs code." } };
const sql = { type: "custom" as const, custom: { name: "sql", format: { type: "grammar" as const, grammar } } };
const pick = {
  type: "custom" as const,
  custom: { name: "pick", format: { type: "grammar" as const, grammar: regex } },
};
const named = (name: string) => ({ type: "custom" as const, custom: { name } });

const promptOf = async (fields: Record<string, unknown>, on: TestServer = server): Promise<string> => {
  const tokenized = await (await on.post("/tokenize", { messages: user("x"), ...fields })).json();
  return on.service.text.tokenizer.decode(tokenized.tokens);
};

describe("by default", () => {
  it.each<[string, Record<string, unknown>, string]>([
    ["effort none", { reasoning_effort: "none" }, "body.reasoning_effort"],
    ["effort minimal", { reasoning_effort: "minimal" }, "body.reasoning_effort"],
    ["effort xhigh", { reasoning_effort: "xhigh" }, "body.reasoning_effort"],
    ["effort max", { reasoning_effort: "max" }, "body.reasoning_effort"],
    ["a custom tool", { tools: [run] }, "body.tools.0.type"],
    ["a choice of one", { tools: [add], tool_choice: named("add") }, "tool_choice"],
    [
      "allowed tools",
      { tools: [add], tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [add] } } },
      "tool_choice",
    ],
    [
      "a call of one",
      {
        messages: [{ role: "assistant", tool_calls: [{ id: "1", type: "custom", custom: { name: "a", input: "b" } }] }],
      },
      "body.messages.0.tool_calls.0.type",
    ],
  ])("%s in a chat is 400", async (_name, fields, param) => {
    const body = { model: "fake", messages: user("say:x"), ...fields } as never;
    await expect(sdk(plain).chat.completions.create(body)).rejects.toMatchObject({ status: 400, param });
  });

  it.each<[string, Record<string, unknown>, string]>([
    ["a custom tool", { tools: [{ type: "custom", name: "run" }] }, "tools.0"],
    ["a choice of one", { tool_choice: { type: "custom", name: "run" } }, "tool_choice"],
    ["a call of one", { input: [{ type: "custom_tool_call", call_id: "1", name: "a", input: "b" }] }, "input.0"],
    ["its result", { input: [{ type: "custom_tool_call_output", call_id: "1", output: "b" }] }, "input.0"],
  ])("%s in a response is 400", async (_name, fields, param) => {
    const body = { model: "fake", input: "say:x", ...fields } as never;
    await expect(sdk(plain).responses.create(body)).rejects.toMatchObject({ status: 400, param });
  });
});

it("takes every effort, for templates that know three", async () => {
  const seen = async (effort: string) => (await promptOf({ reasoning_effort: effort })).split("[")[0];
  expect(await seen("none")).toBe("False");
  for (const low of ["minimal", "low"]) expect(await seen(low)).toMatch(/^low/);
  for (const high of ["high", "xhigh", "max"]) expect(await seen(high)).toMatch(/^high/);
  const { chat } = sdk();
  for (const reasoning_effort of ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const) {
    const { choices } = await chat.completions.create({ model: "fake", messages: user("say:yes"), reasoning_effort });
    expect(choices[0]!.message.content).toBe("yes");
  }
  const batch = { messages: [user("say:a"), user("say:b")], reasoning_effort: "max" };
  expect((await server.post("/v1/chat/completions/batch", batch)).status).toBe(200);
});

it("shows the model only allowed tools, and has it call one if required", async () => {
  const allowed = (mode: "auto" | "required", tools: Record<string, unknown>[]) => ({
    type: "allowed_tools" as const,
    allowed_tools: { mode, tools },
  });
  const tools = [add, run, sql];
  const one = { type: "function", function: { name: "add" } };
  const { choices } = await sdk().chat.completions.create({
    model: "fake",
    messages: user(`say:${call("add", "{}")}`),
    ...{ tools, tool_choice: allowed("auto", [one]) },
  });
  expect(choices[0]!.message.tool_calls).toMatchObject([{ type: "function", function: { name: "add" } }]);
  const { prompt_token_ids: ids } = await server.chat({
    ...{ messages: user("say:x"), tools, tool_choice: allowed("auto", [one]), return_token_ids: true },
  });
  const prompt = server.service.text.tokenizer.decode(ids);
  expect(prompt).toContain('"add"');
  expect(prompt).not.toContain('"run"');
  const forced = await sdk().chat.completions.create({
    model: "fake",
    messages: user("go on"),
    ...{ tools, tool_choice: allowed("required", [named("sql")]), temperature: 0, parallel_tool_calls: false },
  });
  expect(forced.choices[0]!.message.tool_calls).toMatchObject([{ type: "custom", custom: { name: "sql" } }]);
  const unknown = { model: "fake", messages: user("x"), tools, tool_choice: allowed("auto", [named("other")]) };
  await expect(sdk().chat.completions.create(unknown)).rejects.toMatchObject({ status: 400, param: "tool_choice" });
});

describe("custom tools in chats", () => {
  it("are called with a text, whole and streamed", async () => {
    const body = {
      model: "fake",
      messages: user(`say:Now.${call("run", '{"input": "print(\\"hi\\")\\n"}')}${call("add", "{}")}`),
      tools: [run, add],
    };
    const reply = await sdk().chat.completions.create(body);
    expect(reply.choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: {
        content: "Now.",
        tool_calls: [
          { type: "custom", custom: { name: "run", input: 'print("hi")\n' } },
          { type: "function", function: { name: "add", arguments: "{}" } },
        ],
      },
    });
    const stream = await sdk().chat.completions.create({ ...body, stream: true });
    const seen: Loose[] = [];
    const inputs: string[] = [];
    for await (const { choices } of stream) {
      for (const { index, ...delta } of choices[0]?.delta.tool_calls ?? []) {
        seen[index] ??= delta;
        if (delta.custom?.input) inputs.push(delta.custom.input);
      }
    }
    expect(seen).toMatchObject([
      { type: "custom", custom: { name: "run" } },
      { type: "function", function: { name: "add" } },
    ]);
    expect(inputs.length).toBeGreaterThan(5);
    expect(inputs.join("")).toBe('print("hi")\n');
  });

  it("are functions with one text for the model, in conversations too", async () => {
    const called = { id: "c1", type: "custom" as const, custom: { name: "run", input: "1+1" } };
    const messages = [
      ...user("add"),
      { role: "assistant" as const, content: null, tool_calls: [called] },
      { role: "tool" as const, tool_call_id: "c1", content: "2" },
      ...user("say:done"),
    ];
    const { choices } = await sdk().chat.completions.create({ model: "fake", messages, tools: [run, sql] });
    expect(choices[0]!.message.content).toBe("done");
    const prompt = await promptOf({ messages, tools: [run, sql] });
    expect(prompt).toContain('<run {"input": "1+1"}>');
    expect(prompt).toContain('"description": "Runs code."');
    expect(prompt).toContain("follows this Lark grammar");
    expect(prompt).toContain("SELECT ");
  });

  it.each([
    [sql, MATCHING],
    [pick, /^[xyz]{3,5}"\n[0-9]{2}$/],
  ])("follow their grammar when they are forced and when the model chooses", async (tool, matching) => {
    const tools = [tool, add];
    const { name } = tool.custom;
    const inputOf = (reply: Loose): string => {
      expect(reply.choices[0].message.tool_calls).toMatchObject([{ type: "custom", custom: { name } }]);
      return reply.choices[0].message.tool_calls[0].custom.input;
    };
    for (const temperature of [0, 1]) {
      const body = { model: "fake", tools, temperature, max_tokens: 900, parallel_tool_calls: false };
      const forced = { ...body, messages: user("go on"), tool_choice: named(name) };
      expect(inputOf(await sdk().chat.completions.create(forced))).toMatch(matching);
      const begun = `Well. <tool_call>\n{"name": "${name}", "arguments": {"input": "DROP TABLE"}}`.replace("\n", " ");
      const chosen = { ...body, messages: user(`say:${begun}`) };
      const reply: Loose = await sdk().chat.completions.create(chosen);
      expect(inputOf(reply)).toMatch(matching);
      expect(reply.choices[0].message.content).toBe("Well. ");
    }
    const text = await sdk().chat.completions.create({ model: "fake", tools, messages: user("say:no call <tool") });
    expect(text.choices[0]!.message).toMatchObject({ content: "no call <tool", tool_calls: [] });
    const said = `${call("add", '{"a": 1}')}`.replace(">{", "> {").replace("}<", "} <");
    const other = await sdk().chat.completions.create({ model: "fake", tools, messages: user(`say:${said}`) });
    expect(other.choices[0]!.message.tool_calls).toMatchObject([
      { type: "function", function: { name: "add", arguments: '{"a": 1}' } },
    ]);
  });

  it.each<[string, unknown, RegExp]>([
    ["without a grammar", { type: "grammar" }, /needs a grammar/],
    ["of another syntax", { type: "grammar", grammar: { syntax: "ebnf", definition: "x" } }, /lark/],
    ["that is wrong", { type: "grammar", grammar: { syntax: "lark", definition: "start: missing" } }, /"bad".*missing/],
    ["with U+0000", { type: "grammar", grammar: { syntax: "regex", definition: "a\0" } }, /U\+0000/],
  ])("a format %s is 400", async (_name, format, message) => {
    const tools = [{ type: "custom", custom: { name: "bad", format } }];
    const body = { model: "fake", messages: user("x"), tools } as never;
    await expect(sdk().chat.completions.create(body)).rejects.toMatchObject({
      status: 400,
      message: expect.stringMatching(message),
    });
  });

  it("need a name of their own", async () => {
    const twice = { type: "function" as const, function: { name: "run" } };
    const body = { model: "fake", messages: user("x"), tools: [run, twice] };
    await expect(sdk().chat.completions.create(body)).rejects.toMatchObject({ status: 400, param: "tools" });
  });
});

it.each(TOOL_CALL_FORMATS)("custom tools follow their grammar in %s", async (format: ToolCallFormat) => {
  const target = await startTestServer({ ...extended, model: { toolFormat: format } });
  try {
    const body = { model: "fake", tools: [sql], max_tokens: 900, temperature: 1, parallel_tool_calls: false };
    const forced: Loose = await sdk(target).chat.completions.create({
      ...{ ...body, messages: user("go on"), tool_choice: named("sql"), seed: 7 },
    });
    const { input } = forced.choices[0].message.tool_calls[0].custom;
    expect(input).toMatch(MATCHING);
    // The same beginning, said by the model's own choice with another text. A line break, which would end what it says, is a blank.
    const { choices } = await target.chat({
      ...{ ...body, messages: user("go on"), tool_choice: named("sql"), return_token_ids: true },
    });
    const begun = target.service.text.tokenizer.decode(choices[0].token_ids).split("SELECT")[0]!;
    const chosen = await target.chat({ ...body, messages: user(`say:${begun.replaceAll("\n", " ")}DROP`) });
    expect(chosen.choices[0].message.tool_calls).toMatchObject([
      { type: "custom", custom: { name: "sql", input: expect.stringMatching(MATCHING) } },
    ]);
  } finally {
    await target.close();
  }
});

describe("custom tools in responses", () => {
  const flat = { type: "custom" as const, name: "run", description: "Runs code." };
  const strict = { type: "custom" as const, name: "sql", format: { type: "grammar" as const, ...grammar } };

  it("are items, and go on", async () => {
    const input = `say:${call("run", '{"input": "a\\nb"}')}`.replace("\n", "");
    const first = await sdk().responses.create({ model: "fake", input, tools: [flat] });
    const { output_text: _, ...wire } = first;
    expectShape(ResponseObject, wire);
    expect(first.output).toMatchObject([{ type: "custom_tool_call", status: "completed", name: "run", input: "a\nb" }]);
    const [item] = first.output as Loose[];
    expect(item.id).toMatch(/^ctc_[0-9a-f]{32}_0$/);
    const output = { type: "custom_tool_call_output" as const, call_id: item.call_id, output: "42" };
    const more = { model: "fake", tools: [flat] };
    const next = await sdk().responses.create({
      ...{ ...more, previous_response_id: first.id, input: [output, { role: "user", content: "say:done" }] },
    });
    expect(next.output_text).toBe("done");
    const referred = [
      { type: "item_reference" as const, id: item.id },
      output,
      { role: "user" as const, content: "say:again" },
    ];
    expect((await sdk().responses.create({ ...more, input: referred })).output_text).toBe("again");
    const spelt = [{ ...item }, output, { role: "user" as const, content: "say:once more" }];
    expect((await sdk().responses.create({ ...more, input: spelt })).output_text).toBe("once more");
  });

  it("stream as events", async () => {
    const stream = await sdk().responses.create({
      ...{ model: "fake", input: `say:${call("run", '{"input": "abc"}')}`, tools: [flat], stream: true },
    });
    const events: Loose[] = [];
    for await (const event of stream) events.push(event);
    const types = events.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1]);
    expect(types).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.custom_tool_call_input.delta",
      "response.custom_tool_call_input.done",
      "response.output_item.done",
      "response.completed",
    ]);
    const deltas = events.filter(({ type }) => type === "response.custom_tool_call_input.delta");
    expect(deltas.map(({ delta }) => delta).join("")).toBe("abc");
    expect(deltas.length).toBe(3);
    expect(events.find(({ type }) => type === "response.custom_tool_call_input.done")).toMatchObject({ input: "abc" });
  });

  it("follow their grammar, and may be named or allowed", async () => {
    const choices = [
      { type: "custom" as const, name: "sql" },
      { type: "allowed_tools" as const, mode: "required" as const, tools: [{ type: "custom", name: "sql" }] },
    ];
    for (const tool_choice of choices) {
      const { output } = await sdk().responses.create({
        ...{ model: "fake", input: "go on", tools: [flat, strict], tool_choice, temperature: 0 },
        ...{ reasoning: { effort: "none" as const }, max_output_tokens: 900, parallel_tool_calls: false },
      });
      expect(output).toMatchObject([{ type: "custom_tool_call", name: "sql", input: expect.stringMatching(MATCHING) }]);
    }
  });

  it.each<[Record<string, unknown>, string]>([
    [{ tools: [{ type: "custom" }] }, "tools.0.name"],
    [{ tools: [{ ...flat, format: { type: "grammar", syntax: "peg", definition: "x" } }] }, "tools.0.format"],
    [{ tools: [flat], tool_choice: { type: "custom", name: "other" } }, "tool_choice"],
  ])("%j is 400", async (fields, param) => {
    const body = { model: "fake", input: "x", ...fields } as never;
    await expect(sdk().responses.create(body)).rejects.toMatchObject({ status: 400, param });
  });
});
