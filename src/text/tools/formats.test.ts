// Each format as its models write it: shapes that model cards, chat templates and the tests of other servers show.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TOOL_CALL_FORMATS, type ToolCallFormat, type ToolSignature } from "../../grammar/constraint.ts";
import { createReplyParser } from "../create-reply-parser.ts";
import { shownFormat, toolCallFormat } from "./tool-format.ts";

interface Total {
  content: string;
  calls: { name: string; arguments: string; id: string | undefined }[];
}

const signatures: ToolSignature[] = [
  {
    name: "get_weather",
    parameters: {
      type: "object",
      properties: {
        city: { type: "string" },
        days: { type: "integer" },
        tags: { type: "array" },
        zip: { type: "string" },
      },
    },
  },
];

function total(format: ToolCallFormat, pieces: readonly string[], forced = false): Total {
  const parser = createReplyParser({ reasoning: null, tools: format, signatures, forced });
  const out: Total = { content: "", calls: [] };
  for (const delta of [...pieces.flatMap((piece) => parser.push(piece)), ...parser.finish()]) {
    if (delta.kind !== "tool_call") {
      expect(delta.text).not.toBe("");
      out.content += delta.text;
      continue;
    }
    if (delta.name !== undefined) {
      expect(delta.index).toBe(out.calls.length);
      out.calls.push({ name: delta.name, arguments: "", id: delta.id });
    }
    out.calls[delta.index]!.arguments += delta.argumentsText ?? "";
  }
  return out;
}

/** The same whole, by characters and in pieces of seven. */
function read(format: ToolCallFormat, text: string): Total {
  const whole = total(format, [text]);
  expect(total(format, [...text])).toEqual(whole);
  expect(total(format, text.match(/[\s\S]{1,7}/g) ?? [])).toEqual(whole);
  return whole;
}

const call = (name: string, args: string, id?: string) => ({ name, arguments: args, id });

describe.each<[ToolCallFormat, [title: string, text: string, content: string, calls: Total["calls"]][]]>([
  [
    "mistral",
    [
      [
        "a list, as up to version 7",
        '[TOOL_CALLS] [{"name": "add", "arguments":{"a": 3.5, "b": 4}}, {"name": "get_weather", "arguments": {"city": "San Francisco", "state": "CA"}}]',
        "",
        [call("add", '{"a": 3.5, "b": 4}'), call("get_weather", '{"city": "San Francisco", "state": "CA"}')],
      ],
      [
        "keys in another order, and an id",
        '[TOOL_CALLS][{"arguments": {"city": "Oslo"}, "name": "get_weather", "id": "abcdefghi"}]',
        "",
        [call("get_weather", '{"city":"Oslo"}')],
      ],
      [
        "names before arguments, since version 11",
        '[TOOL_CALLS]add{"a": 3.5, "b": 4}[TOOL_CALLS]multiply{"a": 3, "b": {"c": "}"}}',
        "",
        [call("add", '{"a": 3.5, "b": 4}'), call("multiply", '{"a": 3, "b": {"c": "}"}}')],
      ],
      [
        "marks of their own for ids and arguments",
        '[TOOL_CALLS]get_weather[CALL_ID]a1B2c3D4e[ARGS]{"city": "Paris"}[TOOL_CALLS]ping[ARGS]{}',
        "",
        [call("get_weather", '{"city": "Paris"}', "a1B2c3D4e"), call("ping", "{}")],
      ],
      [
        "text before the mark",
        'Let me look.\n[TOOL_CALLS][{"name": "ping", "arguments": {}}]',
        "Let me look.\n",
        [call("ping", "{}")],
      ],
      ["text after the list", '[TOOL_CALLS][{"name": "ping", "arguments": {}}] Done.', " Done.", [call("ping", "{}")]],
      ["no call after the mark", "[TOOL_CALLS] of duty", "[TOOL_CALLS] of duty", []],
      ["a list of something else", '[TOOL_CALLS][1, {"a": 2}]', '[TOOL_CALLS][1, {"a": 2}]', []],
      ["a list that is cut", '[TOOL_CALLS][{"name": "ping", "argum', '[TOOL_CALLS][{"name": "ping", "argum', []],
    ],
  ],
  [
    "granite",
    [
      [
        "a list behind the mark",
        '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Bengaluru"}}]',
        "",
        [call("get_weather", '{"city": "Bengaluru"}')],
      ],
      [
        "the mark as a tag, and space",
        '<tool_call> [ {"name": "a", "arguments": {}} , {"name": "b", "arguments": {"x": [1, 2]}} ]',
        "",
        [call("a", "{}"), call("b", '{"x": [1, 2]}')],
      ],
      [
        "no mark at all",
        '[{"arguments": {"city": "Bengaluru"}, "name": "get_weather"}]',
        "",
        [call("get_weather", '{"city":"Bengaluru"}')],
      ],
      ["a list that is no call", "[1, 2, 3] are numbers.", "[1, 2, 3] are numbers.", []],
      ["text", "No tool is needed.", "No tool is needed.", []],
    ],
  ],
  [
    "phi4_mini_json",
    [
      [
        "functools and a list",
        'functools[{"name": "get_weather", "arguments": {"city": "Tokyo"}}, {"name": "get_weather", "arguments": {"city": "Paris"}}]',
        "",
        [call("get_weather", '{"city": "Tokyo"}'), call("get_weather", '{"city": "Paris"}')],
      ],
      ["a space in front", ' functools[{"name": "ping", "arguments": {}}]', " ", [call("ping", "{}")]],
      [
        "the checkpoint's own marks",
        '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Oslo"}}]<|/tool_call|>',
        "",
        [call("get_weather", '{"city": "Oslo"}')],
      ],
      ["Python", "import functools\nfunctools.reduce(f, xs)", "import functools\nfunctools.reduce(f, xs)", []],
      ["a list of something else", "functools[0] is an error", "functools[0] is an error", []],
    ],
  ],
  [
    "deepseek_v3",
    [
      [
        "calls in code blocks",
        'Sure.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Beijing", "unit": "celsius"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Shanghai"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        "Sure.",
        [call("get_weather", '{"city": "Beijing", "unit": "celsius"}'), call("get_weather", '{"city": "Shanghai"}')],
      ],
      [
        "without the code block, as version 3.1 writes them",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Tokyo"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>ping<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        "",
        [call("get_weather", '{"city": "Tokyo"}'), call("ping", "{}")],
      ],
      [
        "ends that are forgotten",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>ping\n```json\n{"a": "```"}\n``',
        "",
        [call("ping", '{"a": "```"}')],
      ],
      ["no call", "<｜tool▁calls▁begin｜>hm", "<｜tool▁calls▁begin｜>hm", []],
      ["another header", "<｜tool▁call▁begin｜>say {x}", "<｜tool▁call▁begin｜>say {x}", []],
    ],
  ],
  [
    "kimi_k2",
    [
      [
        "a section with two calls",
        'I check.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Beijing"}<|tool_call_end|><|tool_call_begin|>functions.get_weather:1 <|tool_call_argument_begin|>{"city": "杭州"}<|tool_call_end|><|tool_calls_section_end|>',
        "I check.",
        [
          call("get_weather", '{"city": "Beijing"}', "functions.get_weather:0"),
          call("get_weather", '{"city": "杭州"}', "functions.get_weather:1"),
        ],
      ],
      [
        "an id that comes twice",
        "<|tool_call_begin|>functions.a:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_call_begin|>a:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_call_begin|>functions.a:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
        "",
        [call("a", "{}", "functions.a:0"), call("a", "{}", "a:0"), call("a", "{}")],
      ],
      [
        "an id without a name",
        '<|tool_call_begin|>tool_call_1<|tool_call_argument_begin|>{"x": 1}<|tool_call_end|>',
        '<|tool_call_begin|>tool_call_1<|tool_call_argument_begin|>{"x": 1}<|tool_call_end|>',
        [],
      ],
    ],
  ],
  [
    "glm45",
    [
      [
        "texts as they are, other values as JSON",
        'Well.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Beijing "north"</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n<arg_key>tags</arg_key>\n<arg_value>["a", 1.0]</arg_value>\n<arg_key>zip</arg_key>\n<arg_value>10115</arg_value>\n</tool_call>',
        "Well.\n",
        [call("get_weather", '{"city": "Beijing \\"north\\"", "days": 3, "tags": ["a", 1.0], "zip": "10115"}')],
      ],
      [
        "without line breaks, an unknown tool, and one without arguments",
        "<tool_call>read<arg_key>path</arg_key><arg_value>file.txt</arg_value><arg_key>line</arg_key><arg_value>7</arg_value></tool_call>\n<tool_call>ping</tool_call>",
        "",
        [call("read", '{"path": "file.txt", "line": 7}'), call("ping", "{}")],
      ],
      [
        "tags inside a value",
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>a</tool_call>b</arg_value>\n</tool_call>",
        "",
        [call("get_weather", '{"city": "a</tool_call>b"}')],
      ],
      ["no call", "<tool_call>two words</tool_call> end", "<tool_call>two words</tool_call> end", []],
      ["a call that is cut", "<tool_call>ping\n<arg_key>x", "<tool_call>ping\n<arg_key>x", []],
    ],
  ],
])("%s", (format, cases) => {
  test.each(cases)("%s", (_title, text, content, calls) => {
    expect(read(format, text)).toEqual({ content, calls });
  });
});

test("names and arguments stream as they are written", () => {
  const parser = createReplyParser({ reasoning: null, tools: "kimi_k2" });
  const pieces = ["<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>", '{"te', 'xt": "hel', 'lo"}<|tool_ca'];
  expect(pieces.map((piece) => parser.push(piece))).toEqual([
    [],
    [
      { kind: "tool_call", index: 0, name: "f", id: "functions.f:0" },
      { kind: "tool_call", index: 0, argumentsText: '{"te' },
    ],
    [{ kind: "tool_call", index: 0, argumentsText: 'xt": "hel' }],
    [{ kind: "tool_call", index: 0, argumentsText: 'lo"}' }],
  ]);
});

test("any split of any text gives the same reply, in every format", () => {
  const bits = [
    ...["[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "add", "<|tool_call|>", "<|/tool_call|>", "functools["],
    ...["<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"],
    ...[
      "<｜tool▁calls▁begin｜>",
      "<｜tool▁call▁begin｜>",
      "<｜tool▁sep｜>",
      "<｜tool▁call▁end｜>",
      "<｜tool▁calls▁end｜>",
    ],
    ...["function", "```json", "```", "functions.f:0", "<|tool_calls_section_begin|>", "<|tool_call_begin|>"],
    ...["<|tool_call_argument_begin|>", "<|tool_call_end|>", "<|tool_calls_section_end|>"],
    ...[
      '{"name": "f", "arguments": {',
      '{"arguments": {}, "name": "f"}',
      '"a": 1',
      "{}",
      "{",
      "}",
      "}}",
      "[",
      "]",
      ",",
    ],
    ...["\n", " ", '"', "\\", "plain", "<", "<|", "é", "\u{1f600}", "1"],
  ];
  const texts = fc.array(fc.constantFrom(...bits), { maxLength: 14 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(
      fc.constantFrom(...TOOL_CALL_FORMATS),
      fc.boolean(),
      texts,
      fc.array(fc.nat(200), { maxLength: 8 }),
      (format, forced, text, cuts) => {
        const sorted = [0, ...cuts.map((cut) => cut % (text.length + 1)).sort((a, b) => a - b), text.length];
        const pieces = sorted.slice(1).map((end, index) => text.slice(sorted[index]!, end));
        const whole = total(format, [text], forced);
        expect(total(format, pieces, forced)).toEqual(whole);
        expect(total(format, Array.from(text), forced)).toEqual(whole);
        if (whole.calls.length === 0 && !forced) expect(whole.content).toBe(text);
      },
    ),
    { numRuns: 3000 },
  );
});

describe("the format", () => {
  test.each<[string, ToolCallFormat | null]>([
    ["{{ '<tool_call>\\n' }}{{ call | tojson }}", "hermes"],
    ["[TOOL_CALLS][", "mistral"],
    ["respond with <|tool_call|> followed by a JSON list", "granite"],
    ["'<|tool|>' + tools + '<|/tool|>'", "phi4_mini_json"],
    ["formatted as functools[{...}]", "phi4_mini_json"],
    ["<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + t + '<｜tool▁sep｜>' + n + '\\n```json\\n'", "deepseek_v3"],
    ["<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + n + '<｜tool▁sep｜>'", "deepseek_v31"],
    ["<|tool_calls_section_begin|>", "kimi_k2"],
    ["<tool_call>{function-name}\\n<arg_key>{k}</arg_key>", "glm45"],
    ['Respond in the format {"name": function name, "parameters": dictionary}', "llama3_json"],
    ["[func_name1(params_name1=params_value1)]", "pythonic"],
    ["<tool_call>\\n<function=example>", null],
    ["<|channel|>analysis", null],
    ["{{ messages[0].content }}", null],
  ])("is found in a template: %s", (template, format) => {
    expect(shownFormat(template)).toBe(format);
  });

  test("is named, found, or refused with a reason", () => {
    expect(toolCallFormat("qwen")).toBe("hermes");
    expect(toolCallFormat("auto", "<tool_call>")).toBe("hermes");
    expect(() => toolCallFormat("auto", "plain")).toThrow(/choose with --tool-call-parser; known: hermes/);
    expect(() => toolCallFormat("auto", null)).toThrow(/--tool-call-parser/);
    expect(() => toolCallFormat("openai")).toThrow(/harmony channels/);
    expect(() => toolCallFormat("nope")).toThrow(/there is no parser "nope"; known: auto, hermes/);
  });
});
