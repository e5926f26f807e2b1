import { Type } from "typebox";
import { describe, expect, test } from "vitest";
import { readBody } from "../schema/body.ts";
import { chatMessages, chatTools, Message, Tool, type WireTool } from "./messages.ts";

const Messages = Type.Object({ messages: Type.Array(Message) });
const readMessages = (messages: unknown[]) => chatMessages(readBody(Messages, { messages }).value.messages);
const read = (message: unknown) => readMessages([message])[0]!;
const readTools = (tools: unknown) => readBody(Type.Object({ tools: Type.Array(Tool) }), { tools }).value.tools;

describe("reads every variant", () => {
  test.each([
    [
      { role: "system", content: "s" },
      { role: "system", texts: ["s"] },
    ],
    [
      { role: "user", content: "u", name: "bob" },
      { role: "user", texts: ["u"], name: "bob" },
    ],
    [{ role: "user" }, { role: "user", texts: [] }],
    [
      { role: "user", content: "u", extra: 1 },
      { role: "user", texts: ["u"] },
    ],
    [
      { role: "critic", content: "c" },
      { role: "critic", texts: ["c"] },
    ],
    [
      { role: "function", content: null, name: "f" },
      { role: "function", texts: [], name: "f" },
    ],
    [
      { role: "assistant", content: null },
      { role: "assistant", texts: [] },
    ],
    [
      { role: "tool", content: "r", tool_call_id: "1", tool_calls: [{}], reasoning: "no" },
      { role: "tool", texts: ["r"], toolCallId: "1" },
    ],
    [
      { role: "developer", content: "d", tools: [{ function: { name: "f" } }] },
      {
        role: "developer",
        texts: ["d"],
        tools: [{ type: "function", function: { name: "f", description: null, parameters: null } }],
      },
    ],
  ])("%j", (message, expected) => {
    expect(read(message)).toEqual(expected);
  });
});

test("reads text parts of every type", () => {
  const content = [
    "bare",
    { type: "text", text: "text" },
    { type: "input_text", text: "in" },
    { type: "output_text", text: "out" },
    { type: "refusal", refusal: "no" },
    { type: "thinking", thinking: "hm" },
    { type: "text", text: null },
  ];
  expect(read({ role: "user", content }).texts).toEqual(["bare", "text", "in", "out", "no", "hm"]);
});

describe("assistant messages", () => {
  const call = (args: unknown): unknown => ({
    role: "assistant",
    tool_calls: [{ id: "c1", function: { name: "f", arguments: args } }],
  });

  test.each([
    ['{"a": [1]}', { a: [1] }],
    [{ a: 1 }, { a: 1 }],
    ["", {}],
    [null, {}],
    [undefined, {}],
    ["[1]", [1]],
  ])("arguments %j", (args, expected) => {
    expect(read(call(args)).toolCalls).toEqual([
      { id: "c1", type: "function", function: { name: "f", arguments: expected } },
    ]);
  });

  test("empty and null tool_calls are omitted", () => {
    expect(read({ role: "assistant", content: "x", tool_calls: [] })).not.toHaveProperty("toolCalls");
    expect(read({ role: "assistant", content: "x", tool_calls: null })).not.toHaveProperty("toolCalls");
  });

  test("reasoning wins over its older name", () => {
    expect(read({ role: "assistant", reasoning_content: "old" }).reasoning).toBe("old");
    expect(read({ role: "assistant", reasoning: "new", reasoning_content: "old" }).reasoning).toBe("new");
    expect(read({ role: "assistant", reasoning: null, reasoning_content: null })).not.toHaveProperty("reasoning");
  });
});

describe("errors name the field", () => {
  test.each([
    [[], "messages"],
    [["hi"], "body.messages.0"],
    [[{ content: "x" }], "body.messages.0.role"],
    [[{ role: 5, content: "x" }], "body.messages.0.role"],
    [
      [
        { role: "user", content: "x" },
        { role: "user", content: null },
      ],
      "body.messages.1.content",
    ],
    [[{ role: "tool", content: null }], "body.messages.0.content"],
    [[{ role: "user", content: 5 }], "body.messages.0.content"],
    [[{ role: "user", content: [5] }], "body.messages.0.content.0"],
    [[{ role: "user", content: [{ text: "x" }] }], "messages.0.content.0.type"],
    [[{ role: "user", content: ["a", { type: "image_url", image_url: {} }] }], "messages.0.content.1.type"],
    [[{ role: "user", content: [{ type: "toString" }] }], "messages.0.content.0.type"],
    [[{ role: "user", content: [{ type: "text", text: 5 }] }], "messages.0.content.0.text"],
    [[{ role: "assistant", reasoning: 5 }], "body.messages.0.reasoning"],
    [[{ role: "assistant", tool_calls: {} }], "body.messages.0.tool_calls"],
    [
      [{ role: "assistant", tool_calls: [{ type: "custom", function: { name: "f" } }] }],
      "body.messages.0.tool_calls.0.type",
    ],
    [[{ role: "assistant", tool_calls: [{ function: {} }] }], "body.messages.0.tool_calls.0.function.name"],
    [
      [{ role: "assistant", tool_calls: [{ function: { name: "f", arguments: "{" } }] }],
      "messages.0.tool_calls.0.function.arguments",
    ],
  ])("%j -> %s", (messages, param) => {
    expect(() => readMessages(messages)).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^invalid_(body|message|part_type)$/), param }),
    );
  });

  test.each([
    [[5], "body.tools.0"],
    [[{ type: "web", function: { name: "f" } }], "body.tools.0.type"],
    [[{ function: {} }], "body.tools.0.function.name"],
    [[{ function: { name: "f", description: 1 } }], "body.tools.0.function.description"],
    ["f", "body.tools"],
  ])("tools %j -> %s", (tools, param) => {
    expect(() => readTools(tools)).toThrow(expect.objectContaining({ code: "invalid_body", param }));
  });
});

test("tools have null for absent fields, but strict only if it was given", () => {
  const tools: WireTool[] = [{ function: { name: "f" } }, { function: { name: "g", description: "d", strict: null } }];
  expect(chatTools(tools)).toEqual([
    { type: "function", function: { name: "f", description: null, parameters: null } },
    { type: "function", function: { name: "g", description: "d", parameters: null, strict: null } },
  ]);
});

test("empty and absent tools become null", () => {
  expect([chatTools(null), chatTools(undefined), chatTools([])]).toEqual([null, null, null]);
});
