import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { chatMessages, chatTools, type WireMessage } from "../api/generation/messages.ts";
import { ChatTemplate, type RenderInput } from "./chat-template.ts";
import { PromptError, TemplateError } from "./prompt-error.ts";

function input(messages: unknown[], changes: Partial<RenderInput> = {}): RenderInput {
  return {
    messages: chatMessages(messages as WireMessage[]),
    tools: null,
    documents: null,
    addGenerationPrompt: true,
    continueFinalMessage: false,
    reasoningEffort: null,
    specialTokens: { bos_token: "<s>", eos_token: "</s>" },
    kwargs: {},
    ...changes,
  };
}

const user = { role: "user", content: "Hi" };
const render = (source: string, messages: unknown[] = [user], changes: Partial<RenderInput> = {}): string =>
  new ChatTemplate(source).render(input(messages, changes));

const chatml =
  "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>\n{% endfor %}" +
  "{% if add_generation_prompt %}<|assistant|>{% endif %}";

describe("templates print what Python's Jinja prints", () => {
  const file = new URL("../../test/fixtures/templates/jinja.json", import.meta.url);
  const { variables, cases } = JSON.parse(readFileSync(file, "utf8")) as {
    variables: Record<string, unknown>;
    cases: { template: string; expected?: string; error?: string }[];
  };
  test.each(cases)("$template", ({ template, expected }) => {
    const run = (): string => render(template, [user], { kwargs: variables });
    if (expected === undefined) expect(run).toThrow(TemplateError);
    else expect(run()).toBe(expected);
  });
});

test.each([
  ["{{ messages|groupby('role') }}", "unknown filter 'groupby'"],
  ["{{ cycler('a', 'b') }}", "'cycler' is undefined"],
])("a part of Jinja that no chat template uses is an error: %s", (source, message) => {
  expect(() => render(source)).toThrow(message);
});

test.each([
  ["{{ 1 < 5 < 3 }}", "False"],
  ["{{ 1 < 2 < 3 }}", "True"],
  ["{{ 3 > 2 > 1 >= 1 }}", "True"],
  ["{{ 3 > 2 > 2 > 1 }}", "False"],
  ["{{ (1 == 1) != (2 < 3) }}", "False"],
])("comparisons of several values: %s", (source, expected) => {
  expect(render(source)).toBe(expected);
});

describe("content", () => {
  const looping =
    "{% for m in messages %}{% for part in m['content'] %}({{ part.type }}:{{ part.text }}){% endfor %}{% endfor %}";
  const texts = [{ role: "user", content: [{ type: "text", text: "a" }, "b"] }];

  test.each([
    ["prints content", chatml, "string"],
    ["walks through the parts", looping, "openai"],
    [
      "walks under another name",
      "{% set all = messages[1:] %}{% for x in all %}{% for c in x.content %}{% endfor %}{% endfor %}",
      "openai",
    ],
    ["walks one message", "{% set x = messages[0] %}{% for c in x.content | list %}{% endfor %}", "openai"],
    ["walks the first message directly", "{% for c in messages[0]['content'] %}{% endfor %}", "openai"],
    [
      "walks tool calls kept in content",
      "{% for m in messages %}{% set calls = m.content %}{% for c in calls %}{% endfor %}{% endfor %}",
      "string",
    ],
    [
      "walks something else called content",
      "{% for d in documents %}{% for c in d.content %}{% endfor %}{% endfor %}",
      "string",
    ],
  ])("a template that %s gets content as %s", (_name, source, format) => {
    expect(new ChatTemplate(source).facts.contentFormat).toBe(format);
  });

  test("a loop over a variable called content is one over parts, as vLLM sees it", () => {
    const macro = "{% macro show(content) %}{% for c in content %}{{ c.text }};{% endfor %}{% endmacro %}";
    const source = `${macro}{% for m in messages %}{{ show(m.content) }}{% endfor %}`;
    expect(new ChatTemplate(source).facts.contentFormat).toBe("openai");
    expect(render(source, texts)).toBe("a;b;");
  });

  test("the operator's choice wins over what is detected", () => {
    const plain = "{{ messages[0].content }}";
    expect(new ChatTemplate(plain, "openai").render(input([user]))).toBe("[{'type': 'text', 'text': 'Hi'}]");
    expect(new ChatTemplate(looping, "string").render(input([user]))).toBe("(:)(:)");
  });

  test("a string is the texts joined by a newline, a list is text parts", () => {
    expect(render("{{ messages[0].content }}", texts)).toBe("a\nb");
    expect(render(looping, texts)).toBe("(text:a)(text:b)");
    expect(render(looping, [user])).toBe("(text:Hi)");
  });

  test("null content becomes an empty string", () => {
    expect(render("[{{ messages[0].content }}]", [{ role: "assistant", content: null }])).toBe("[]");
  });

  describe("beside tool calls", () => {
    const call = { role: "assistant", tool_calls: [{ type: "function", function: { name: "f", arguments: "{}" } }] };
    const telling =
      "{% for m in messages %}{% if m['role'] == 'assistant' and m['content'] is none %}" +
      "({% for t in m['tool_calls'] %}{{ t['function']['name'] }}{% endfor %}){% endif %}" +
      "{% if m['role'] == 'assistant' and m['content'] is not none %}<{{ m['content'] }}>{% endif %}{% endfor %}";

    test.each([
      ["is null for a template that tells it apart", telling, { ...call, content: null }, "(f)"],
      ["is null there when it is absent", telling, call, "(f)"],
      ["stays an empty string there when it is one", telling, { ...call, content: "" }, "<>"],
      ["is an empty string for others", "[{{ messages[0].content }}]", { ...call, content: null }, "[]"],
      [
        "is an empty string for a template that only guards against null",
        "{% if messages[0].content is none %}null{% endif %}{{ messages[0].content | length }}",
        { ...call, content: null },
        "0",
      ],
    ])("null content %s", (_name, source, message, expected) => {
      expect(render(source, [message])).toBe(expected);
    });

    test("null content without calls is an empty string everywhere", () => {
      expect(render(telling, [{ role: "assistant", content: null }])).toBe("<>");
    });
  });

  test("tool results are a string even for templates that loop over parts", () => {
    const source =
      "{% for m in messages %}{% for c in m.content %}{% endfor %}{{ m.content is string }}{{ m.tool_call_id }}{% endfor %}";
    expect(render(source, [{ role: "tool", tool_call_id: "7", content: [{ type: "text", text: "a" }] }])).toBe("True7");
  });
});

describe("developer messages", () => {
  const messages = [
    { role: "user", content: "q" },
    { role: "developer", content: "d" },
    { role: "system", content: ["s", "t"] },
  ];

  test("become one system message in front where the template does not know the role", () => {
    expect(render(chatml, messages)).toBe("<|system|>d\n\ns\nt<|end|>\n<|user|>q<|end|>\n<|assistant|>");
  });

  test("stay where it does", () => {
    const knowing = `{% if messages[0].role == "developer" %}{% endif %}${chatml}`;
    expect(render(knowing, messages)).toContain("<|developer|>d");
  });

  test("without any, system messages stay where they are", () => {
    expect(render(chatml, [user, { role: "system", content: "s" }])).toMatch(/^<\|user\|>/);
  });
});

describe("variables", () => {
  test("special tokens, tools with nulls filled in, documents and flags", () => {
    const source =
      "{{ bos_token }}{{ tools | tojson }}{{ documents }}{{ add_generation_prompt }}{{ continue_final_message }}";
    const tools = chatTools([
      { function: { name: "f" } },
      { type: "function", function: { name: "g", description: "d", strict: true } },
    ]);
    expect(render(source, [user], { tools })).toBe(
      '<s>[{"type": "function", "function": {"name": "f", "description": null, "parameters": null}}, ' +
        '{"type": "function", "function": {"name": "g", "description": "d", "parameters": null, "strict": true}}]NoneTrueFalse',
    );
  });

  test("tool calls carry values and reasoning has both names", () => {
    const source =
      "{{ messages[0].tool_calls[0].function.arguments | tojson }}{{ messages[0].reasoning }}{{ messages[0].reasoning_content }}";
    const message = {
      role: "assistant",
      reasoning_content: "r",
      tool_calls: [{ function: { name: "f", arguments: '{"a": 1}' } }],
    };
    expect(render(source, [message])).toBe('{"a": 1}rr');
  });

  test("numbers in arguments are printed as Python prints what the model wrote", () => {
    const source =
      "{% for k, v in messages[0].tool_calls[0].function.arguments | items %}{{ k }}={{ v }} {{ v is number }}," +
      "{{ v | tojson }};{% endfor %}{{ messages[0].tool_calls[0].function.arguments.f + 1 }}";
    const written = '{"id": 1234567890123456789, "f": 1.0, "e": -1e3, "s": "1.0 \\"2.0", "l": [-0.0, 12, 0.5, 1e22]}';
    const message = { role: "assistant", tool_calls: [{ function: { name: "f", arguments: written } }] };
    expect(render(source, [message])).toBe(
      "id=1234567890123456789 True,1234567890123456789;f=1.0 True,1.0;e=-1000.0 True,-1000.0;" +
        's=1.0 "2.0 False,"1.0 \\"2.0";l=[-0.0, 12, 0.5, 1e+22] False,[-0.0, 12, 0.5, 1e+22];2.0',
    );
    // What a client sends in the form of ours is an object like any other.
    const forged = { role: "assistant", tool_calls: [{ function: { name: "f", arguments: { "\0number": "x" } } }] };
    expect(render("{{ messages[0].tool_calls[0].function.arguments | tojson }}", [forged])).toBe(
      '{"\\u0000number": "x"}',
    );
  });

  test("extra variables are visible, except unused, reserved and already set ones", () => {
    const kwargs = { flavour: "x", unused: 1, range: "no", messages: "no", none: 3, bos_token: "<b>", __proto__: 1 };
    expect(
      render("{{ flavour }}{{ range(2) | list }}{{ messages | length }}{{ none }}{{ bos_token }}", [user], { kwargs }),
    ).toBe("x[0, 1]1None<b>");
  });

  test("reasoning effort is defined only when given and turns thinking on unless the caller decides", () => {
    const source = "{{ reasoning_effort is defined }}{{ enable_thinking }}";
    expect(render(source)).toBe("False");
    expect(render(source, [user], { reasoningEffort: "low" })).toBe("TrueTrue");
    expect(render(source, [user], { reasoningEffort: "low", kwargs: { enable_thinking: false } })).toBe("TrueFalse");
  });

  test("dates are in English", () => {
    const months = "January February March April May June July August September October November December".split(" ");
    const now = new Date();
    expect(render("{{ strftime_now('%d %B %Y') }}")).toBe(
      `${String(now.getDate()).padStart(2, "0")} ${months[now.getMonth()]} ${now.getFullYear()}`,
    );
  });
});

describe("continuing the last message", () => {
  const going = { addGenerationPrompt: false, continueFinalMessage: true };
  const reply = (content: unknown): unknown[] => [user, { role: "assistant", content }];

  test("the prompt ends right after its text", () => {
    expect(render(chatml, reply("Sure, "), going)).toBe("<|user|>Hi<|end|>\n<|assistant|>Sure, ");
  });

  test("where the template trims content, trailing whitespace goes too", () => {
    const trimming = chatml.replace("message.content", "message.content | trim");
    expect(render(trimming, reply("Sure, "), going)).toBe("<|user|>Hi<|end|>\n<|assistant|>Sure,");
  });

  test("the last of several parts is continued, and text that occurs earlier does not confuse the cut", () => {
    expect(render(chatml, reply([{ type: "text", text: "a" }, "Hi"]), going)).toBe(
      "<|user|>Hi<|end|>\n<|assistant|>a\nHi",
    );
  });

  test.each([
    ["no content", chatml, reply(null)],
    ["a template that does not show it", "{{ messages[0].content }}", reply("x")],
    ["a template that shows it changed", "{{ messages[1].content | upper }}", reply("x")],
  ])("%s is refused", (_name, source, messages) => {
    expect(() => render(source, messages, going)).toThrow(expect.objectContaining({ code: "invalid_continuation" }));
  });
});

test("a conversation of 1,001 messages is rendered without a limit on steps", () => {
  const messages = Array.from({ length: 1001 }, (_, i) => ({
    role: i % 2 === 0 ? "user" : "assistant",
    content: `${i}`,
  }));
  // Quadratic, as several published templates are: more than a million steps.
  const source =
    "{% for m in messages %}{% set ns = namespace(n=0) %}{% for o in messages %}{% if o.role == m.role %}" +
    "{% set ns.n = ns.n + 1 %}{% endif %}{% endfor %}{{ ns.n }},{% endfor %}";
  expect(render(source, messages)).toBe(`${"501,500,".repeat(500)}501,`);
});

test("tool calls of earlier turns can be added to a text", () => {
  const source =
    "{% for c in messages[0].tool_calls %}{{ '```json\\n' + c['function']['arguments'] + '\\n```' }}{% endfor %}";
  const message = { role: "assistant", tool_calls: [{ function: { name: "f", arguments: '{"a":1.0}' } }] };
  expect(render(source, [message])).toBe('```json\n{"a": 1.0}\n```');
});

describe("faults and limits", () => {
  test("what a template raises is the message, word for word", () => {
    expect(() => render("{{ raise_exception('Roles must alternate!') }}")).toThrow(
      new TemplateError("Roles must alternate!"),
    );
  });

  test.each([
    ["{% for m in messages %}", /cannot be parsed/],
    ["{{ ", /cannot be parsed/],
    ["{% nonsense %}", /cannot be parsed.*nonsense/],
    ["{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", /nested too deeply/],
    ["{% for i in range(100001) %}{% endfor %}", /at most 100000/],
    ["{{ 'a' | indent(999999999, true) }}", /grew beyond/],
    ["{{ 'x' * 10 ** 9 }}", /grew beyond/],
    ["{{ [1] * 10 ** 9 }}", /grew beyond/],
    ["{{ 'x'.center(10 ** 9) }}", /grew beyond/],
    ["{{ '7'.zfill(10 ** 12) }}", /grew beyond/],
    ["{{ '%999999999d' % 1 }}", /grew beyond/],
    ["{{ {} | tojson(indent='          ' * 10) }}", /indents by 0 to 32/],
    ["{{ '{:>999999999}'.format(1) }}", /grew beyond/],
  ])("%#: %s", (source, message) => {
    expect(() => render(source)).toThrow(TemplateError);
    expect(() => render(source)).toThrow(message);
  });

  test("20,000 parentheses are refused", () => {
    expect(() => render(`{{ ${"(".repeat(20_000)}1${")".repeat(20_000)} }}`)).toThrow(
      expect.objectContaining({ constructor: TemplateError, message: expect.stringMatching(/nested too deeply/) }),
    );
  });

  test.each([
    ["steps", "{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}", { maxSteps: 10_000 }],
    [
      "one text",
      "{% set ns = namespace(x='ab') %}{% for i in range(40) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
      { maxText: 100_000 },
    ],
    ["replacement", "{{ ('a' * 3) if false else 'aaaa'.replace('a', 'b' ~ bos_token) }}", { maxText: 12 }],
    [
      "one list",
      "{% set ns = namespace(x=[1]) %}{% for i in range(40) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
      { maxItems: 1_000 },
    ],
    ["all text", "{% for i in range(1000) %}{{ 'aaaaaaaaaa' }}{% endfor %}", { maxTotalText: 5_000 }],
  ])("too much: %s", (_name, source, limit) => {
    const limits = { maxSteps: 1e6, maxText: 1e6, maxItems: 1e6, maxTotalText: 1e7, ...limit };
    expect(() => new ChatTemplate(source).render(input([user]), limits)).toThrow(/more than|grew beyond/);
  });

  test("too many values are refused", () => {
    const kwargs = { x: Array.from({ length: 60_000 }, (_, i) => ({ a: i, b: i, c: i, d: i })) };
    expect(() => render("{{ x }}", [user], { kwargs })).toThrow(/more than 250000 values/);
    expect(render("{{ y }}", [user], { kwargs })).toBe("");
  });

  test("a value nested too deeply is an error of the request", () => {
    let deep: unknown = 1;
    for (let i = 0; i < 20_000; i++) deep = [deep];
    expect(() => render("{{ x | tojson }}", [user], { kwargs: { x: deep } })).toThrow(PromptError);
  });
});
