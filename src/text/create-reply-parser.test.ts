import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createReplyParser, createThoughtMeter, type ReplyParserOptions } from "./create-reply-parser.ts";
import { reasoningState, reasoningStyle } from "./reasoning.ts";
import { toolCallFormat } from "./tools/tool-format.ts";

interface Total {
  content: string;
  reasoning: string;
  calls: { name: string; arguments: string }[];
}

function total(options: ReplyParserOptions, pieces: readonly string[]): Total {
  const parser = createReplyParser(options);
  const out: Total = { content: "", reasoning: "", calls: [] };
  for (const delta of [...pieces.flatMap((piece) => parser.push(piece)), ...parser.finish()]) {
    if (delta.kind === "tool_call") {
      if (delta.name !== undefined) {
        expect(delta.index).toBe(out.calls.length);
        out.calls.push({ name: delta.name, arguments: "" });
      }
      out.calls[delta.index]!.arguments += delta.argumentsText ?? "";
    } else {
      expect(delta.text).not.toBe("");
      out[delta.kind] += delta.text;
    }
  }
  return out;
}

const style = reasoningStyle("think", null)!;
const hermes: ReplyParserOptions = { reasoning: null, tools: "hermes" };
const llama: ReplyParserOptions = { reasoning: null, tools: "llama3_json" };
const pythonic: ReplyParserOptions = { reasoning: null, tools: "pythonic" };
const open: ReplyParserOptions = { reasoning: { style, state: "open" }, tools: null };
const maybe: ReplyParserOptions = { reasoning: { style, state: "optional" }, tools: "hermes" };

describe("reasoning", () => {
  test.each([
    [open, "<think>\nhm\n</think>\n\nyes", { reasoning: "hm", content: "yes" }],
    [open, "hm\n\nhm</think>yes", { reasoning: "hm\n\nhm", content: "yes" }],
    [open, "never ends", { reasoning: "never ends", content: "" }],
    [open, "a </thin b</think>c", { reasoning: "a </thin b", content: "c" }],
    [maybe, "plain <think> answer", { reasoning: "", content: "plain <think> answer" }],
    [maybe, "\n<think>x</think>", { reasoning: "x", content: "" }],
    [maybe, "<thi", { reasoning: "", content: "<thi" }],
    [
      { reasoning: { style, state: "closed" as const }, tools: null },
      "<think>x",
      { reasoning: "", content: "<think>x" },
    ],
  ])("%j %s", (options, text, expected) => {
    expect(total(options, [text])).toEqual({ ...expected, calls: [] });
  });

  test("tokens count as reasoning until the end marker", () => {
    const meter = createThoughtMeter(open)!;
    const flags = ["<think>", "hm", "</think>", "yes"].map((piece) => {
      meter.push(piece);
      return meter.reasoning;
    });
    expect(flags).toEqual([true, true, false, false]);
  });

  test("is chosen by name or from the template", () => {
    expect(reasoningStyle("auto", "… '<think>\\n\\n</think>' …")).toEqual(style);
    expect(reasoningStyle("auto", "no markers")).toBeNull();
    expect(reasoningStyle("none", "<think></think>")).toBeNull();
    expect(() => reasoningStyle("nope", null)).toThrow(/known: auto, none, think/);
  });

  test("begins where the prompt left off", () => {
    const state = (prompt: string, continued: string | null = null, disabled = false) =>
      reasoningState(style, { prompt, continued, disabled });
    expect(state("assistant\n<think>\n")).toBe("open");
    expect(state("assistant\n<think>\n\n</think>\n\n")).toBe("closed");
    expect(state("assistant\n")).toBe("optional");
    expect(state("assistant\n", null, true)).toBe("closed");
    expect(state("…<think>so", "<think>so")).toBe("open");
    expect(state("…The answer", "The answer")).toBe("closed");
    expect(
      reasoningState(reasoningStyle("deepseek_r1", null)!, { prompt: "x", continued: null, disabled: false }),
    ).toBe("open");
  });
});

describe("hermes", () => {
  const call = (name: string, args: string) => `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;
  test.each([
    [
      `Let me see.\n${call("f", '{"a": "}<"}')}\n${call("g", "{}")}\n`,
      "Let me see.\n",
      [
        ["f", '{"a": "}<"}'],
        ["g", "{}"],
      ],
    ],
    ['<tool_call>{"arguments": {"x": 1}, "name": "late"}</tool_call>', "", [["late", '{"x":1}']]],
    [
      '<tool_call>{"arguments": {"id": 1234567890123456789, "s": "1.0", "t": [1.0]}, "name": "late"}</tool_call>',
      "",
      [["late", '{"id":1234567890123456789,"s":"1.0","t":[1.0]}']],
    ],
    [
      '<tool_call>{"arguments": 1.0, "name": "f"}</tool_call>',
      '<tool_call>{"arguments": 1.0, "name": "f"}</tool_call>',
      [],
    ],
    ['<tool_call>{"name": "s", "arguments": "{\\"x\\": 1}"}</tool_call>', "", [["s", '{"x": 1}']]],
    ['<tool_call>{"name": "open", "arguments": {"x": [1]}}', "", [["open", '{"x": [1]}']]],
    ["<tool_call>not json</tool_call> after", "<tool_call>not json</tool_call> after", []],
    ['<tool_call>{"name": 5}</tool_call>', '<tool_call>{"name": 5}</tool_call>', []],
    ['<tool_call>{"na', '<tool_call>{"na', []],
    [`${call("f", "{}")} and more text`, " and more text", [["f", "{}"]]],
    ["a <tool", "a <tool", []],
  ])("%s", (text, content, calls) => {
    expect(total(hermes, [text])).toEqual({
      content,
      reasoning: "",
      calls: calls.map(([name, args]) => ({ name, arguments: args })),
    });
  });

  test("streams the name first, then the arguments in fragments", () => {
    const parser = createReplyParser(hermes);
    const deltas = ['<tool_call>{"name": "f", "argum', 'ents": {"te', 'xt": "hel', 'lo"}}</tool_call>'].map((piece) =>
      parser.push(piece),
    );
    expect(deltas).toEqual([
      [],
      [
        { kind: "tool_call", index: 0, name: "f" },
        { kind: "tool_call", index: 0, argumentsText: '{"te' },
      ],
      [{ kind: "tool_call", index: 0, argumentsText: 'xt": "hel' }],
      [{ kind: "tool_call", index: 0, argumentsText: 'lo"}' }],
    ]);
  });
});

test("granite4 writes calls as hermes does, also with arguments as text between other text", () => {
  const text = (name: string, args: unknown) => `<tool_call> ${JSON.stringify({ name, arguments: args })} </tool_call>`;
  const written = `First: \n${text("f", '{"at": [[23.5, 43.1]]}')} then ${text("g", { s: "AAPL" })} done.`;
  for (const pieces of [[written], [...written]]) {
    const { content, calls } = total({ reasoning: null, tools: toolCallFormat("granite4") }, pieces);
    expect(content.split(/\s+/)).toEqual(["First:", "then", "done."]);
    expect(calls.map(({ name, arguments: args }) => [name, JSON.parse(args)])).toEqual([
      ["f", { at: [[23.5, 43.1]] }],
      ["g", { s: "AAPL" }],
    ]);
  }
});

test("of forced calls nothing but calls comes out, however they are cut", () => {
  const call = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>';
  for (let length = 0; length <= call.length; length++) {
    expect(total({ ...hermes, forced: true }, [call.slice(0, length)]).content).toBe("");
  }
  expect(total({ ...hermes, forced: true }, [call]).calls).toEqual([{ name: "f", arguments: '{"a": 1}' }]);
});

describe("llama3_json and pythonic", () => {
  test.each([
    [llama, '{"name": "f", "parameters": {"a": 1}}', "", [["f", '{"a": 1}']]],
    [
      llama,
      '<|python_tag|>{"name": "f", "parameters": {}}; {"name": "g", "arguments": {"b": "}"}}',
      "",
      [
        ["f", "{}"],
        ["g", '{"b": "}"}'],
      ],
    ],
    [llama, '{"answer": 5}', '{"answer": 5}', []],
    [llama, "Hello {", "Hello {", []],
    [llama, '\n {"answer": 5}', '\n {"answer": 5}', []],
    [llama, '<|python_tag|> {"answer": 5}', '<|python_tag|> {"answer": 5}', []],
    [llama, '{"name": "f", "parameters": {}}; {"x": 1}', '; {"x": 1}', [["f", "{}"]]],
    [llama, '{"name": "f", "parameters": {}} done', " done", [["f", "{}"]]],
    [
      pythonic,
      "[f(a=1, b='x\\'y', c=[True, None], d={'k': -2.5e3}), g()]",
      "",
      [
        ["f", '{"a": 1, "b": "x\'y", "c": [true, null], "d": {"k": -2.5e3}}'],
        ["g", "{}"],
      ],
    ],
    [pythonic, "[1, 2]", "[1, 2]", []],
    [pythonic, "[f(a=1), oops", ", oops", [["f", '{"a": 1}']]],
    [pythonic, "[f(a=1", "[f(a=1", []],
    [pythonic, "[f(a='x', b=12", ", b=12", [["f", '{"a": "x"']]],
    [pythonic, "[f(a='x', b=now(), c=1)]", ", b=now(), c=1)]", [["f", '{"a": "x"']]],
    [
      pythonic,
      "[f(a=(1, 2,), b=[], c={}, d=+.5, e=01,)] g",
      " g",
      [["f", '{"a": [1, 2], "b": [], "c": {}, "d": 0.5, "e": 1}']],
    ],
    [
      pythonic,
      "[f(a='\\u00e9\\x41\\n\\q', b=\"it's\", n=12345678901234567890)], g()",
      ", g()",
      [["f", '{"a": "éA\\n\\\\q", "b": "it\'s", "n": 12345678901234567890}']],
    ],
    [pythonic, "[f(a=__import__('os'))]", "[f(a=__import__('os'))]", []],
    [pythonic, "text [f()]", "text [f()]", []],
  ])("%j %s", (options, text, content, calls) => {
    expect(total(options as ReplyParserOptions, [text])).toEqual({
      content,
      reasoning: "",
      calls: (calls as string[][]).map(([name, args]) => ({ name, arguments: args })),
    });
  });
});

test("any split of any text gives the same reply", () => {
  const bits = [
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "\n",
    " ",
    "{",
    "}",
    '{"name": "f", "arguments": {',
    '{"name": "f", "parameters": ',
    '"a": 1',
    '"',
    "\\",
    ", ",
    "; ",
    "[f(",
    "a=",
    "1",
    "1e",
    "-",
    "'x'",
    ")",
    "]",
    "True",
    "plain",
    "<",
    "</",
    "é",
    "\u{1f600}",
    "{}}",
    "<|python_tag|>",
  ];
  const texts = fc.array(fc.constantFrom(...bits), { maxLength: 14 }).map((parts) => parts.join(""));
  const options = fc.record({
    reasoning: fc.constantFrom(
      null,
      { style, state: "open" as const },
      { style, state: "optional" as const },
      { style, state: "closed" as const },
    ),
    tools: fc.constantFrom(null, "hermes" as const, "llama3_json" as const, "pythonic" as const),
  });
  fc.assert(
    fc.property(options, texts, fc.array(fc.nat(60), { maxLength: 8 }), (option, text, cuts) => {
      const sorted = [0, ...cuts.map((cut) => cut % (text.length + 1)).sort((a, b) => a - b), text.length];
      const pieces = sorted.slice(1).map((end, index) => text.slice(sorted[index]!, end));
      const whole = total(option, [text]);
      expect(total(option, pieces)).toEqual(whole);
      expect(total(option, Array.from(text))).toEqual(whole);
    }),
    { numRuns: 3000 },
  );
});

test.each([
  [
    hermes,
    '<tool_call>{"name": "f", "arguments": {"a": 1}</tool_call>\n<tool_call>{"name": "g", "arguments": {}}</tool_call> end',
  ],
  [hermes, '<tool_call>{"name": "f", "arguments": {"a": 1}\n<tool_call>{"name": "g", "arguments": {}}</tool_call> end'],
  [llama, '{"name": "f", "parameters": {"a": 1} ; {"name": "g", "parameters": {}}'],
])("a forgotten brace after the arguments swallows nothing that follows: %#", (options, text) => {
  const whole = total(options, [text]);
  expect(whole.calls).toEqual([
    { name: "f", arguments: '{"a": 1}' },
    { name: "g", arguments: "{}" },
  ]);
  if (options === hermes) expect(whole.content.trim()).toBe("end");
  expect(total(options, [...text])).toEqual(whole);
});
