// Each format as its models write it: shapes that model cards, chat templates and the tests of other servers show.
import { describe, expect, test } from "vitest";
import { signatures, type TotalReply, totalReply } from "../../../test/support/total-reply.ts";
import type { ToolCallFormat } from "../../grammar/constraint.ts";
import { createReplyParser } from "../create-reply-parser.ts";

/** The same whole, by characters and in pieces of seven. */
function read(format: ToolCallFormat, text: string): TotalReply {
  const whole = totalReply(format, [text]);
  expect(totalReply(format, [...text])).toEqual(whole);
  expect(totalReply(format, text.match(/[\s\S]{1,7}/g) ?? [])).toEqual(whole);
  return whole;
}

const call = (name: string, args: string, id?: string) => ({ name, arguments: args, id });

describe.each<[ToolCallFormat, [title: string, text: string, content: string, calls: TotalReply["calls"]][]]>([
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
      [
        "a name inside the arguments, which come first",
        '[TOOL_CALLS] [{"arguments":{"name": "Ada"}, "name": "find_person"}]\nI wait.',
        "\nI wait.",
        [call("find_person", '{"name":"Ada"}')],
      ],
      ["no call after the mark", "[TOOL_CALLS] of duty", "[TOOL_CALLS] of duty", []],
      ["a list of something else", '[TOOL_CALLS][1, {"a": 2}]', '[TOOL_CALLS][1, {"a": 2}]', []],
      ["a list that is cut", '[TOOL_CALLS][{"name": "ping", "argum', '[TOOL_CALLS][{"name": "ping", "argum', []],
    ],
  ],
  [
    "llama3_json",
    [
      [
        "calls separated by semicolons",
        '{"name": "get_weather", "parameters": {"city": "Oslo"}}; {"name": "ping", "parameters": {}}',
        "",
        [call("get_weather", '{"city": "Oslo"}'), call("ping", "{}")],
      ],
      [
        "a type in front, as Llama 3.1 and 3.2 often write it",
        '{"type": "function", "name": "get_weather", "parameters": {"city": "Oslo", "days": 10}}',
        "",
        [call("get_weather", '{"city":"Oslo","days":10}')],
      ],
      [
        "arguments in front, and the tag",
        '<|python_tag|>{"arguments": {"city": "}"}, "name": "get_weather"}',
        "",
        [call("get_weather", '{"city":"}"}')],
      ],
      [
        "calls on lines of their own, and with a comma",
        '{"name": "a", "parameters": {"x": 1}}\n{"type": "function", "name": "b", "parameters": {}},\n{"name": "c", "parameters": {}}',
        "",
        [call("a", '{"x": 1}'), call("b", "{}"), call("c", "{}")],
      ],
      ["an answer with a name", '{"name": "Ada", "age": 36}', '{"name": "Ada", "age": 36}', []],
      ["a name alone", '{"name": "Ada"}', '{"name": "Ada"}', []],
      ["a type of something else", '{"type": "city", "value": "Oslo"}', '{"type": "city", "value": "Oslo"}', []],
      [
        "an object behind a call",
        '{"name": "ping", "parameters": {}}\n{"city": "Oslo"}',
        '\n{"city": "Oslo"}',
        [call("ping", "{}")],
      ],
      ["text behind a call", '{"name": "ping", "parameters": {}}, done', ", done", [call("ping", "{}")]],
      ["a call that is cut in its type", '{"type": "func', '{"type": "func', []],
    ],
  ],
  [
    "granite",
    [
      ["a list of names", '[{"name": "Ada"}, {"name": "Grace"}]', '[{"name": "Ada"}, {"name": "Grace"}]', []],
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
      [
        "arguments before names, in a list over several lines",
        'I look both up.\n<|tool_call|> [\n  {"arguments": {"city": "Pune"}, "name": "get_weather"},\n  {"arguments": {"zone": "Asia/Kolkata"}, "name": "get_time"}\n]',
        "I look both up.\n",
        [call("get_weather", '{"city":"Pune"}'), call("get_time", '{"zone":"Asia/Kolkata"}')],
      ],
      [
        "an object instead of a list",
        '<|tool_call|> {"name": "a", "arguments": {}}',
        '<|tool_call|> {"name": "a", "arguments": {}}',
        [],
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
      [
        "values of every kind over several lines, and text around them",
        'I call it.\nfunctools[{\n  "name": "f",\n  "arguments": {\n    "s": "a \\"b\\" C:\\\\d",\n    "n": [1, 2.5, null, true, {}]\n  }\n}]\nAnything else?',
        "I call it.\n\nAnything else?",
        [call("f", '{\n    "s": "a \\"b\\" C:\\\\d",\n    "n": [1, 2.5, null, true, {}]\n  }')],
      ],
      ["an empty list", "functools[] is nothing", "functools[] is nothing", []],
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
      [
        "a brace that is forgotten, and a call behind it",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>a\n```json\n{"x": 1\n```<｜tool▁call▁end｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>b\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        "",
        [call("a", '{"x": 1\n'), call("b", "{}")],
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
        "tags inside a text, and a brace that is forgotten",
        '<|tool_calls_section_begin|><|tool_call_begin|>functions.show:0 <|tool_call_argument_begin|>{"html": "<p>`a`</p>"}<|tool_call_end|><|tool_call_begin|>functions.f:1<|tool_call_argument_begin|>{"x": 1<|tool_call_end|><|tool_call_begin|>functions.g:2<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>',
        "",
        [
          call("show", '{"html": "<p>`a`</p>"}', "functions.show:0"),
          call("f", '{"x": 1', "functions.f:1"),
          call("g", "{}", "functions.g:2"),
        ],
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
        "digits where a text may stand beside another type, which the schema names",
        "<tool_call>get_weather\n<arg_key>house</arg_key>\n<arg_value>12</arg_value>\n<arg_key>floor</arg_key>\n<arg_value>3</arg_value>\n<arg_key>unit</arg_key>\n<arg_value>2</arg_value>\n</tool_call>\n<tool_call>get_weather\n<arg_key>house</arg_key>\n<arg_value>null</arg_value>\n<arg_key>floor</arg_key>\n<arg_value>true</arg_value>\n</tool_call>",
        "",
        [
          call("get_weather", '{"house": "12", "floor": 3, "unit": "2"}'),
          call("get_weather", '{"house": null, "floor": "true"}'),
        ],
      ],
      [
        "without line breaks, an unknown tool, and one without arguments",
        "<tool_call>read<arg_key>path</arg_key><arg_value>file.txt</arg_value><arg_key>line</arg_key><arg_value>7</arg_value></tool_call>\n<tool_call>ping</tool_call>",
        "",
        [call("read", '{"path": "file.txt", "line": 7}'), call("ping", "{}")],
      ],
      [
        "text between calls, and values that only look like JSON",
        "<tool_call>book\n<arg_key>day</arg_key>\n<arg_value>2026-11-18</arg_value>\n<arg_key>seats</arg_key>\n<arg_value>2</arg_value>\n</tool_call>\n\nAnd one more:\n\n<tool_call>now\n</tool_call>",
        "\n\nAnd one more:",
        [call("book", '{"day": "2026-11-18", "seats": 2}'), call("now", "{}")],
      ],
      [
        "tags inside a value",
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>a</tool_call>b</arg_value>\n</tool_call>",
        "",
        [call("get_weather", '{"city": "a</tool_call>b"}')],
      ],
      ["no call", "<tool_call>two words</tool_call> end", "<tool_call>two words</tool_call> end", []],
      ["a call that is cut in a key", "<tool_call>ping\n<arg_key>x", "<tool_call>ping\n<arg_key>x", []],
      [
        "a call that is cut in a text",
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>New Yo</arg_val",
        "",
        [call("get_weather", '{"city": "New Yo')],
      ],
      [
        "a call that is cut behind a value",
        "<tool_call>get_weather\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n<arg_key>ci",
        "\n<arg_key>ci",
        [call("get_weather", '{"days": 3')],
      ],
      [
        "a closing tag that is forgotten",
        "<tool_call>get_weather\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\nI wait.",
        "\nI wait.",
        [call("get_weather", '{"days": 3}')],
      ],
      [
        "text where a value should begin",
        "<tool_call>get_weather<arg_key>days</arg_key><arg_value>3</arg_value><arg_key>city</arg_key>: Rome</tool_call>",
        "<arg_key>city</arg_key>: Rome</tool_call>",
        [call("get_weather", '{"days": 3')],
      ],
    ],
  ],
])("%s", (format, cases) => {
  test.each(cases)("%s", (_title, text, content, calls) => {
    expect(read(format, text)).toEqual({ content, calls });
  });
});

test.each<[ToolCallFormat, string]>([
  ["hermes", '<tool_call>{"name": "get_weather", "arguments": {"city": "'],
  ["llama3_json", '{"name": "get_weather", "parameters": {"city": "'],
  ["pythonic", "[get_weather(city='"],
  ["mistral", '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "'],
  ["granite", '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "'],
  ["phi4_mini_json", 'functools[{"name": "get_weather", "arguments": {"city": "'],
  ["deepseek_v3", '<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "'],
  ["deepseek_v31", '<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "'],
  ["kimi_k2", '<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "'],
  ["glm45", "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>"],
])("%s: the name comes before the first text, which follows as it is written", (format, beginning) => {
  const parser = createReplyParser({ reasoning: null, tools: format, signatures });
  const first = parser.push(beginning);
  expect(first[0]).toMatchObject({ kind: "tool_call", index: 0, name: "get_weather" });
  expect(first.slice(1)).toEqual([{ kind: "tool_call", index: 0, argumentsText: '{"city": "' }]);
  for (const word of ["Rio", " de", " Janeiro"]) {
    expect(parser.push(word)).toEqual([{ kind: "tool_call", index: 0, argumentsText: word }]);
  }
});

test("llama3_json: an answer in JSON streams as soon as a key shows that it is no call", () => {
  const parser = createReplyParser({ reasoning: null, tools: "llama3_json", signatures });
  expect(parser.push('{"type": "city", "na')).toEqual([]);
  expect(parser.push('me": "Oslo", "value')).toEqual([]);
  expect(parser.push('": ')).toEqual([{ kind: "content", text: '{"type": "city", "name": "Oslo", "value": ' }]);
  expect(parser.push("[1, ")).toEqual([{ kind: "content", text: "[1, " }]);
});

test("values of forced glm45 calls stream too", () => {
  const parser = createReplyParser({ reasoning: null, tools: "glm45", signatures, forced: true });
  const pieces = [
    "<tool_call>f\n<arg_key>list</arg_key>\n<arg_value>",
    "[1, ",
    '"</arg_value>"',
    "]</arg_",
    "value>\n</tool_call>",
  ];
  expect(
    pieces.map((piece) => parser.push(piece).map((delta) => delta.kind === "tool_call" && delta.argumentsText)),
  ).toEqual([[undefined, '{"list": '], ["[1, "], ['"</arg_value>"'], ["]"], ["}"]]);
});
