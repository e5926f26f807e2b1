import { expect, it } from "vitest";
import { emptyReply } from "./reply.ts";
import { setResults, TOOL_TEMPLATES, type Tool, toolFields, withCallsInText } from "./tools.ts";

const tool = (part: Partial<Tool>): Tool => ({ ...TOOL_TEMPLATES[0]!, name: "look", ...part });

it("become fields of a request, unless they are switched off or incomplete", () => {
  expect(toolFields([])).toEqual({});
  expect(toolFields([tool({ isOn: false, name: "" })])).toEqual({});
  expect(toolFields([tool({ description: "Looks.", parameters: '{"type":"object"}' })])).toEqual({
    tools: [{ type: "function", function: { name: "look", description: "Looks.", parameters: { type: "object" } } }],
  });
  expect(() => toolFields([tool({ name: "a b" })])).toThrow("letters");
  expect(() => toolFields([tool({ parameters: "{" })])).toThrow("Parameters of look: This is not JSON");
  expect(() => toolFields([tool({ parameters: "[]" })])).toThrow("one JSON object");
  expect(() => toolFields([tool({}), tool({})])).toThrow("Two tools");
});

it("have results that are set for every call, or none", () => {
  const tools = [tool({ result: "{}" }), tool({ name: "ask", result: null })];
  expect(setResults([{ name: "look" }, { name: "look" }], tools)).toEqual(["{}", "{}"]);
  expect(setResults([{ name: "look" }, { name: "ask" }], tools)).toBe(null);
  expect(setResults([{ name: "other" }], tools)).toBe(null);
});

it("are found in the text of servers that do not read them", () => {
  const reply = (content: string) => withCallsInText({ ...emptyReply(), content });
  const call = '<tool_call>{"name": "look", "arguments": {"at": "sea"}}</tool_call>';
  expect(reply(`Hm. ${call}\n${call}`)).toMatchObject({
    content: "Hm.",
    toolCalls: [
      { id: "call-1", name: "look", arguments: '{"at":"sea"}' },
      { id: "call-2", name: "look", arguments: '{"at":"sea"}' },
    ],
  });
  for (const text of [
    "no call",
    "<tool_call>{</tool_call>",
    '<tool_call>{"x":1}</tool_call>',
    "<tool_call>null</tool_call>",
  ]) {
    expect(reply(text)).toMatchObject({ content: text, toolCalls: [] });
  }
});
