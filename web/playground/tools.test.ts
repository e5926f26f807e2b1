import { expect, it } from "vitest";
import { emptyReply } from "./reply.ts";
import { nameFrom, resultsOf, TOOL_TEMPLATES, type Tool, toolFields, withCallsInText } from "./tools.ts";

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

it("have results that are set or come from their servers, or wait for the user", async () => {
  const tools = [
    tool({ result: "{}" }),
    tool({ name: "ask", result: null }),
    tool({ name: "relay", result: null, server: { name: "sea", tool: "re.lay" } }),
  ];
  const asked: string[] = [];
  const results = (...names: string[]) => {
    const calls = names.map((name) => ({ name, arguments: `{"of":"${name}"}` }));
    return resultsOf(calls, tools, async ({ server }, call) => {
      asked.push(`${server!.name} ${server!.tool} ${call.arguments}`);
      return "from afar";
    });
  };
  expect(await results("look", "look")).toEqual(["{}", "{}"]);
  expect(await results("look", "ask")).toBe(null);
  expect(await results("other")).toBe(null);
  expect(await results("relay", "ask")).toBe(null);
  expect(asked).toEqual([]); // a call that must wait asks nobody
  expect(await results("look", "relay")).toEqual(["{}", "from afar"]);
  expect(asked).toEqual(['sea re.lay {"of":"relay"}']);
});

it("have names that a request allows", () => {
  expect(nameFrom("look.up/now")).toBe("look_up_now");
  expect(nameFrom("x".repeat(100))).toHaveLength(64);
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
