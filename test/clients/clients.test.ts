// Unmodified clients against the server: the table of the README, a test for each of its cells. The fake model says what the
// last "say:" in its prompt tells it to, and a tool's result is such an order: an answer proves that the result arrived.
import { readFileSync } from "node:fs";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { ChatOpenAI } from "@langchain/openai";
import { Agent, type AgentOutputType, tool as agentTool, OpenAIProvider, Runner } from "@openai/agents";
import { generateText, jsonSchema, type LanguageModel, Output, stepCountIs, streamText, tool } from "ai";
import OpenAI7 from "openai";
import OpenAI6 from "openai-v6";
import { describe, expect, it } from "vitest";
import { toolCallFormat } from "../../src/text/tools/tool-format.ts";
import { sharedServer } from "../support/shared-server.ts";
import { API_KEY } from "../support/test-server.ts";

const server = sharedServer({
  config: { enableAutoToolChoice: true, toolCallParser: "hermes" },
  model: { toolFormat: toolCallFormat("hermes") },
});

const CALL = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>';
/** As a constraint spells it. */
const JUDGE = '<tool_call>\n{"name": "judge", "arguments": {"a": 1, "b": 2}}\n</tool_call>';
const YES = 'say:{"yes": true}';
const parameters = {
  type: "object" as const,
  properties: { a: { type: "integer" as const }, b: { type: "integer" as const } },
  required: ["a", "b"],
  additionalProperties: false as const,
};
const schema = {
  type: "object" as const,
  properties: { yes: { type: "boolean" as const } },
  required: ["yes"],
  additionalProperties: false as const,
};
const sum = ({ a, b }: { a: number; b: number }) => `say:The sum is ${a + b}.`;
const SUM = "The sum is 3.";
const v1 = () => `${server.url}/v1`;
const isAnswer = (text: string | null | undefined) => expect(typeof JSON.parse(text!).yes).toBe("boolean");

const COLUMNS = ["chat", "stream", "tools", "structured", "responses"] as const;
type Cells = Partial<Record<(typeof COLUMNS)[number], () => Promise<void>>>;

function openai(Client: typeof OpenAI7): Cells {
  const client = () => new Client({ baseURL: v1(), apiKey: API_KEY, maxRetries: 0 });
  const user = (content: string) => [{ role: "user" as const, content }];
  const add = { name: "add", description: "adds", parameters };
  return {
    async chat() {
      const reply = await client().chat.completions.create({ model: "fake", messages: user("say:hello") });
      expect(reply.choices[0]!.message.content).toBe("hello");
    },
    async stream() {
      const stream = client().chat.completions.stream({ model: "fake", messages: user("say:hello") });
      expect(await stream.finalContent()).toBe("hello");
    },
    async tools() {
      const runnable = { ...add, parse: (text: string) => JSON.parse(text), function: sum };
      const runner = client().chat.completions.runTools({
        model: "fake",
        messages: user(`say:${CALL}`),
        tools: [{ type: "function" as const, function: runnable }],
      });
      expect(await runner.finalContent()).toBe(SUM);
    },
    async structured() {
      const reply = await client().chat.completions.create({
        model: "fake",
        messages: user("go on"),
        max_tokens: 300,
        response_format: { type: "json_schema", json_schema: { name: "answer", schema, strict: true } },
      });
      isAnswer(reply.choices[0]!.message.content);
    },
    async responses() {
      const { responses } = client();
      const first = await responses.create({ model: "fake", input: "say:hello", instructions: "Obey." });
      expect(first.output_text).toBe("hello");
      expect((await responses.retrieve(first.id)).output_text).toBe("hello");
      expect((await responses.inputItems.list(first.id)).data).toHaveLength(1);
      const stream = responses.stream({ model: "fake", input: "say:again", previous_response_id: first.id });
      const types: string[] = [];
      for await (const event of stream) types.push(event.type);
      expect(types.at(0)).toBe("response.created");
      expect(types.at(-1)).toBe("response.completed");
      expect((await stream.finalResponse()).output_text).toBe("again");
      const tools = [{ type: "function" as const, ...add, strict: true }];
      const called = await responses.create({ model: "fake", input: `say:${CALL}`, tools });
      const call = called.output.find((item) => item.type === "function_call")!;
      const answered = await responses.create({
        model: "fake",
        previous_response_id: called.id,
        input: [{ type: "function_call_output", call_id: call.call_id, output: sum(JSON.parse(call.arguments)) }],
        tools,
      });
      expect(answered.output_text).toBe(SUM);
      const formed = await responses.create({
        model: "fake",
        input: "go on",
        max_output_tokens: 300,
        text: { format: { type: "json_schema", name: "answer", schema, strict: true } },
      });
      isAnswer(formed.output_text);
      await responses.delete(first.id);
      await expect(responses.retrieve(first.id)).rejects.toBeInstanceOf(Client.NotFoundError);
      await expect(
        responses.create({ model: "fake", input: "x", tools: [{ type: "web_search" }] }),
      ).rejects.toBeInstanceOf(Client.BadRequestError);
    },
  };
}

/** `useResponses`: the default of the SDK. */
function agents(useResponses: boolean): Required<Omit<Cells, "responses">> {
  const runner = () =>
    new Runner({
      modelProvider: new OpenAIProvider({ baseURL: v1(), apiKey: API_KEY, useResponses }),
      tracingDisabled: true,
      model: "fake",
    });
  const add = agentTool({
    name: "add",
    description: "adds",
    parameters,
    strict: true,
    execute: async (input) => sum(input as { a: number; b: number }),
  });
  const agent = (more: object = {}) => new Agent({ name: "adder", instructions: "Add.", tools: [add], ...more });
  return {
    async chat() {
      expect((await runner().run(agent({ tools: [] }), "say:hello")).finalOutput).toBe("hello");
    },
    async stream() {
      const result = await runner().run(agent(), `say:${CALL}`, { stream: true });
      let text = "";
      for await (const piece of result.toTextStream()) text += piece;
      await result.completed;
      expect(text).toBe(SUM);
      expect(result.finalOutput).toBe(SUM);
    },
    async tools() {
      const result = await runner().run(agent(), `say:${CALL}`);
      expect(result.finalOutput).toBe(SUM);
      expect(result.newItems.map(({ type }) => type)).toEqual([
        "tool_call_item",
        "tool_call_output_item",
        "message_output_item",
      ]);
    },
    async structured() {
      const outputType = { type: "json_schema", name: "answer", strict: true, schema } as AgentOutputType;
      const result = await runner().run(agent({ tools: [], outputType, modelSettings: { maxTokens: 300 } }), "go on");
      expect(typeof (result.finalOutput as unknown as { yes: unknown }).yes).toBe("boolean");
      // Both: the model calls, and its answer after the result has the shape.
      const judge = agentTool({
        name: "judge",
        description: "judges",
        parameters,
        strict: true,
        execute: async () => YES,
      });
      const judged = await runner().run(agent({ tools: [judge], outputType }), `say:${JUDGE}`);
      expect(judged.newItems.map(({ type }) => type)).toContain("tool_call_output_item");
      expect(judged.finalOutput).toEqual({ yes: true });
    },
  };
}

function anthropic(): Cells {
  const client = () => new Anthropic({ baseURL: server.url, apiKey: API_KEY, maxRetries: 0 });
  const request = (content: string) => ({
    model: "fake",
    max_tokens: 300,
    messages: [{ role: "user" as const, content }],
  });
  const add = { name: "add", description: "adds", input_schema: parameters };
  return {
    async chat() {
      const message = await client().messages.create({ ...request("say:hello"), system: "Obey." });
      expect(message).toMatchObject({ content: [{ type: "text", text: "hello" }], stop_reason: "end_turn" });
      const { input_tokens } = await client().messages.countTokens({ model: "fake", messages: request("hi").messages });
      expect(input_tokens).toBe("[user]hi\n[assistant]".length);
    },
    async stream() {
      const stream = client().messages.stream({ ...request(`say:Hi.${CALL}`), tools: [add] });
      const pieces: string[] = [];
      stream.on("text", (text) => pieces.push(text));
      const message = await stream.finalMessage();
      expect(pieces.join("")).toBe("Hi.");
      expect(message).toMatchObject({
        content: [{ text: "Hi." }, { type: "tool_use", name: "add", input: { a: 1, b: 2 } }],
        stop_reason: "tool_use",
      });
    },
    async tools() {
      const first = request(`say:${CALL}`);
      const called = await client().messages.create({ ...first, tools: [add] });
      const call = called.content.find((block) => block.type === "tool_use")!;
      const result = {
        type: "tool_result" as const,
        tool_use_id: call.id,
        content: sum(call.input as { a: number; b: number }),
      };
      const messages = [
        ...first.messages,
        { role: "assistant" as const, content: called.content },
        { role: "user" as const, content: [result] },
      ];
      const answered = await client().messages.create({ ...first, messages, tools: [add] });
      expect(answered.content).toMatchObject([{ type: "text", text: SUM }]);
      const forced = await client().messages.create({
        ...request("go on"),
        tools: [add],
        tool_choice: { type: "tool", name: "add" },
      });
      expect(Object.keys((forced.content[0] as { input: object }).input)).toEqual(["a", "b"]);
    },
    async structured() {
      const output_config = { format: { type: "json_schema" as const, schema } };
      const message = await client().messages.create({ ...request("go on"), output_config });
      isAnswer((message.content[0] as { text: string }).text);
    },
  };
}

const compatible = () =>
  createOpenAICompatible({ name: "flywheel", baseURL: v1(), apiKey: API_KEY, supportsStructuredOutputs: true })("fake");
/** This provider speaks the Responses API. */
const ofOpenAI = () => createOpenAI({ baseURL: v1(), apiKey: API_KEY })("fake");

function aiSdk(model: () => LanguageModel) {
  return {
    async chat() {
      expect((await generateText({ model: model(), prompt: "say:hello", maxRetries: 0 })).text).toBe("hello");
    },
    async stream() {
      let text = "";
      for await (const part of streamText({ model: model(), prompt: "say:hello", maxRetries: 0 }).textStream)
        text += part;
      expect(text).toBe("hello");
    },
    async tools() {
      const add = tool({
        description: "adds",
        inputSchema: jsonSchema<{ a: number; b: number }>(parameters),
        execute: sum,
      });
      const options = {
        model: model(),
        prompt: `say:${CALL}`,
        tools: { add },
        stopWhen: stepCountIs(3),
        maxRetries: 0,
      };
      expect((await generateText(options)).text).toBe(SUM);
    },
    async structured() {
      const output = Output.object({ schema: jsonSchema<{ yes: boolean }>(schema) });
      const reply = await generateText({
        model: model(),
        prompt: "go on",
        output,
        maxOutputTokens: 300,
        maxRetries: 0,
      });
      expect(typeof reply.output.yes).toBe("boolean");
    },
  };
}

function langChain(): Cells {
  const chat = (useResponsesApi = false) =>
    new ChatOpenAI({
      model: "fake",
      apiKey: API_KEY,
      configuration: { baseURL: v1() },
      maxRetries: 0,
      maxTokens: 300,
      useResponsesApi,
    });
  const add = { type: "function" as const, function: { name: "add", description: "adds", parameters } };
  return {
    async chat() {
      expect((await chat().invoke("say:hello")).content).toBe("hello");
    },
    async stream() {
      let text = "";
      for await (const chunk of await chat().stream("say:hello")) text += chunk.content;
      expect(text).toBe("hello");
    },
    async tools() {
      const reply = await chat().bindTools([add]).invoke(`say:${CALL}`);
      expect(reply.tool_calls).toMatchObject([{ name: "add", args: { a: 1, b: 2 } }]);
    },
    async structured() {
      const reply = await chat().withStructuredOutput(schema, { name: "answer", method: "jsonSchema" }).invoke("go on");
      expect(typeof reply.yes).toBe("boolean");
    },
    async responses() {
      expect((await chat(true).invoke("say:hello")).text).toBe("hello");
      const reply = await chat(true).bindTools([add]).invoke(`say:${CALL}`);
      expect(reply.tool_calls).toMatchObject([{ name: "add", args: { a: 1, b: 2 } }]);
      let text = "";
      for await (const chunk of await chat(true).stream("say:hello")) text += chunk.text;
      expect(text).toBe("hello");
    },
  };
}

const CLIENTS: Record<string, Cells> = {
  "`openai` 7": openai(OpenAI7),
  "`openai` 6": openai(OpenAI6 as unknown as typeof OpenAI7),
  "`@openai/agents`": {
    ...agents(false),
    async responses() {
      for (const run of Object.values(agents(true))) await run();
    },
  },
  "`@anthropic-ai/sdk`": anthropic(),
  "`ai` (AI SDK)": {
    ...aiSdk(compatible),
    async responses() {
      for (const run of Object.values(aiSdk(ofOpenAI))) await run();
    },
  },
  "`@langchain/openai`": langChain(),
};

describe.each(Object.entries(CLIENTS))("%s", (_name, cells) => {
  it.each(Object.entries(cells))("%s", async (_column, run) => {
    await run();
  });
});

it("the table of the guide has these cells and no others", () => {
  const guide = readFileSync(new URL("../../docs/guides/clients.md", import.meta.url), "utf8");
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const rows = Object.entries(CLIENTS).map(([name, cells]) =>
    row([name, ...COLUMNS.map((column) => (cells[column] === undefined ? "–" : "✓"))]),
  );
  expect(guide).toContain([row(["client", ...COLUMNS]), "|---|:-:|:-:|:-:|:-:|:-:|", ...rows].join("\n"));
});
