import { describe, expect, test } from "vitest";
import { readMessages } from "./messages.ts";
import { PromptError } from "./prompt-error.ts";
import { readDocuments, readTools } from "./template-tools.ts";

const read = (message: unknown) => readMessages([message])[0]!;

describe("every variant", () => {
  test.each([
    [
      { role: "system", content: "s" },
      { role: "system", texts: ["s"], hasContent: true },
    ],
    [
      { role: "user", content: "u", name: "bob" },
      { role: "user", texts: ["u"], hasContent: true, name: "bob" },
    ],
    [{ role: "user" }, { role: "user", texts: [], hasContent: false }],
    [
      { role: "user", content: "u", name: 5, extra: 1 },
      { role: "user", texts: ["u"], hasContent: true },
    ],
    [
      { role: "critic", content: "c" },
      { role: "critic", texts: ["c"], hasContent: true },
    ],
    [
      { role: "function", content: null, name: "f" },
      { role: "function", texts: [], hasContent: false, name: "f" },
    ],
    [
      { role: "assistant", content: null },
      { role: "assistant", texts: [], hasContent: false },
    ],
    [
      { role: "tool", content: "r", tool_call_id: "1", tool_calls: [{}], reasoning: "no" },
      { role: "tool", texts: ["r"], hasContent: true, toolCallId: "1" },
    ],
    [
      { role: "developer", content: "d", tools: [{ function: { name: "f" } }] },
      {
        role: "developer",
        texts: ["d"],
        hasContent: true,
        tools: [{ type: "function", function: { name: "f", description: null, parameters: null } }],
      },
    ],
  ])("%j", (message, expected) => {
    expect(read(message)).toEqual(expected);
  });
});

test("text in all its forms", () => {
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

  test("no tool calls are left out", () => {
    expect(read({ role: "assistant", content: "x", tool_calls: [] })).not.toHaveProperty("toolCalls");
    expect(read({ role: "assistant", content: "x", tool_calls: null })).not.toHaveProperty("toolCalls");
  });

  test("reasoning wins over its older name", () => {
    expect(read({ role: "assistant", reasoning_content: "old" }).reasoning).toBe("old");
    expect(read({ role: "assistant", reasoning: "new", reasoning_content: "old" }).reasoning).toBe("new");
    expect(read({ role: "assistant", reasoning: null, reasoning_content: null })).not.toHaveProperty("reasoning");
  });
});

describe("mistakes name their field", () => {
  test.each([
    [[], "messages"],
    [["hi"], "messages.0"],
    [[{ content: "x" }], "messages.0.role"],
    [[{ role: 5, content: "x" }], "messages.0.role"],
    [
      [
        { role: "user", content: "x" },
        { role: "user", content: null },
      ],
      "messages.1.content",
    ],
    [[{ role: "tool", content: null }], "messages.0.content"],
    [[{ role: "user", content: 5 }], "messages.0.content"],
    [[{ role: "user", content: [5] }], "messages.0.content.0"],
    [[{ role: "user", content: [{ text: "x" }] }], "messages.0.content.0.type"],
    [[{ role: "user", content: ["a", { type: "image_url", image_url: {} }] }], "messages.0.content.1.type"],
    [[{ role: "user", content: [{ type: "toString" }] }], "messages.0.content.0.type"],
    [[{ role: "user", content: [{ type: "text", text: 5 }] }], "messages.0.content.0.text"],
    [[{ role: "assistant", reasoning: 5 }], "messages.0.reasoning"],
    [[{ role: "assistant", tool_calls: {} }], "messages.0.tool_calls"],
    [[{ role: "assistant", tool_calls: [{ type: "custom" }] }], "messages.0.tool_calls.0.type"],
    [[{ role: "assistant", tool_calls: [{ function: {} }] }], "messages.0.tool_calls.0.function.name"],
    [
      [{ role: "assistant", tool_calls: [{ function: { name: "f", arguments: "{" } }] }],
      "messages.0.tool_calls.0.function.arguments",
    ],
  ])("%j -> %s", (messages, param) => {
    expect(() => readMessages(messages)).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^invalid_(message|part_type)$/), param }),
    );
  });

  test.each([
    [[5], "tools.0"],
    [[{ type: "web", function: { name: "f" } }], "tools.0.type"],
    [[{ function: {} }], "tools.0.function.name"],
    [[{ function: { name: "f", description: 1 } }], "tools.0.function.description"],
    ["f", "tools"],
  ])("tools %j -> %s", (tools, param) => {
    expect(() => readTools(tools)).toThrow(expect.objectContaining({ code: "invalid_tool", param }));
  });

  test("documents hold strings", () => {
    expect(readDocuments([{ title: "t", text: "x" }])).toEqual([{ title: "t", text: "x" }]);
    expect(readDocuments(null)).toBeNull();
    expect(() => readDocuments([{ title: 1 }])).toThrow(expect.objectContaining({ param: "documents.0.title" }));
    expect(() => readDocuments({})).toThrow(PromptError);
  });
});

test("no tools are null", () => {
  expect([readTools(null), readTools(undefined), readTools([])]).toEqual([null, null, null]);
});
