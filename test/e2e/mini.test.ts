// The bundled model over HTTP at the default precision: a small sample of the cases that `npm run eval:mini` scores, and its
// chat template. The thresholds leave room for other machines' rounding.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadModel } from "../../src/app/load-model.ts";
import { type StartedServer, startServer } from "../../src/app/serve.ts";
import { loadConfig } from "../../src/config/load.ts";
import { heldOutCases } from "../mini/cases.ts";
import { inParallel, replyTo } from "../mini/endpoint.ts";
import { grade } from "../mini/grade.ts";

const PER_TASK = 10;
const data = mkdtempSync(join(tmpdir(), "flywheel-mini-"));
const cases = heldOutCases(PER_TASK);
let server: StartedServer;

beforeAll(async () => {
  const config = loadConfig({
    env: {},
    flags: {
      model: "bundled",
      port: 0,
      data,
      apiKey: ["k"],
      logLevel: "error",
      enableAutoToolChoice: true,
      toolCallParser: "hermes",
    },
  });
  server = await startServer(config, loadModel);
});

afterAll(async () => {
  await server?.close();
  rmSync(data, { recursive: true, force: true });
});

async function graded(task: string): Promise<{ form: number; right: number }> {
  const mine = cases.filter((one) => one.task === task);
  const grades = await inParallel(mine, PER_TASK, async (one) => {
    const reply = await replyTo({ baseUrl: server.url, apiKey: "k" }, one, { temperature: 0 });
    return grade(one.check, reply);
  });
  return { form: grades.filter((one) => one.format).length, right: grades.filter((one) => one.pass).length };
}

describe("held-out cases", () => {
  test.each([
    ["one-word", 9],
    ["yes-no-maybe", 9],
    ["json", 8],
  ])("%s: at least %i of 10 replies have the requested form", async (task, least) => {
    expect((await graded(task)).form).toBeGreaterThanOrEqual(least);
  });

  test.each([
    ["add-2", 9],
    ["tool", 8],
    ["passage", 7],
    ["name-memory", 7],
  ])("%s: at least %i of 10 replies are correct", async (task, least) => {
    expect((await graded(task)).right).toBeGreaterThanOrEqual(least);
  });

  test("three-digit sums leave room to learn, and thinking helps", async () => {
    const [plain, thinking] = [await graded("add-3"), await graded("add-3-think")];
    expect(plain.right).toBeGreaterThanOrEqual(1);
    expect(plain.right).toBeLessThanOrEqual(9);
    expect(thinking.right).toBeGreaterThan(plain.right);
  });
});

// biome-ignore lint/suspicious/noExplicitAny: replies are read without a schema
type Loose = any;

async function post(path: string, body: Record<string, unknown>): Promise<Loose> {
  const response = await fetch(`${server.url}${path}`, {
    method: "POST",
    headers: { authorization: "Bearer k", "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(200);
  return response.json();
}

/** The prompt as the model reads it. */
async function prompt(body: Record<string, unknown>): Promise<string> {
  const { tokens } = await post("/tokenize", body);
  return (await post("/detokenize", { tokens })).prompt;
}

const chat = async (body: Record<string, unknown>): Promise<Loose> =>
  (await post("/v1/chat/completions", { temperature: 0, max_tokens: 220, ...body })).choices[0];
const ask = (content: string) => ({ role: "user", content });
const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Get the current weather in a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

describe("chat template", () => {
  const off = "<|im_start|>assistant\n<think>\n\n</think>\n\n";

  test("renders a developer message as a system message and closes the think block", async () => {
    const order = "Answer with one word.";
    const asSystem = await prompt({ messages: [{ role: "system", content: order }, ask("Hi")] });
    expect(asSystem).toBe(`<|im_start|>system\n${order}<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n${off}`);
    expect(await prompt({ messages: [{ role: "developer", content: order }, ask("Hi")] })).toBe(asSystem);
    expect(await prompt({ messages: [ask("Hi")], add_generation_prompt: false })).toBe(
      "<|im_start|>user\nHi<|im_end|>\n",
    );
  });

  test("thinks if enable_thinking says so, or else reasoning_effort", async () => {
    const messages = [ask("What is 348 + 275?")];
    const plain = await chat({ messages });
    expect(plain.message.reasoning ?? "").toBe("");
    for (const on of [{ chat_template_kwargs: { enable_thinking: true } }, { reasoning_effort: "high" }]) {
      const { message } = await chat({ messages, ...on });
      expect(message.reasoning).toContain("=");
      expect(message.content).toContain("623");
    }
    const both = await chat({ messages, reasoning_effort: "high", chat_template_kwargs: { enable_thinking: false } });
    expect(both.message.reasoning ?? "").toBe("");
  });

  test("calls tools and uses their results", async () => {
    const messages: Loose[] = [ask("What is the weather in Oslo?")];
    expect(await prompt({ messages, tools: [weather] })).toContain(
      "# Tools\nget_weather(city: string) - Get the current weather in a city<|im_end|>",
    );
    const first = await chat({ messages, tools: [weather] });
    expect(first.finish_reason).toBe("tool_calls");
    const call = first.message.tool_calls[0];
    expect(JSON.parse(call.function.arguments)).toEqual({ city: "Oslo" });
    messages.push(first.message, { role: "tool", tool_call_id: call.id, content: "snow, -3 degrees" });
    const second = await chat({ messages, tools: [weather] });
    expect(second.message.content).toMatch(/snow|3/);
    expect(await prompt({ messages, tools: [weather] })).toContain(
      "<|im_start|>user\n<tool_response>\nsnow, -3 degrees\n</tool_response><|im_end|>\n",
    );
  });

  test("answers from documents", async () => {
    const documents = [{ title: "Note", text: "Nora found a silver ring under the bridge." }];
    const { message } = await chat({ messages: [ask("Who found a silver ring?")], documents });
    expect(message.content).toContain("Nora");
  });
});
