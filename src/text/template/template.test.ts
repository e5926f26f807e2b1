import { describe, expect, test } from "vitest";
import { Raised } from "./globals.ts";
import { Template } from "./template.ts";
import { ArgumentsJson } from "./values.ts";

const render = (source: string, variables: Record<string, unknown> = {}): string =>
  new Template(source).render(variables);

describe("errors name the line", () => {
  test.each([
    ["\n\n{{ 1 + }}", "line 3: expected an expression, found '}}'"],
    ["{% if x %}\n\n", "line 2: expected {% endif %}, found the end of the template"],
    ["a\n{% include 'x' %}", "line 2: unknown statement 'include'"],
    ["a\n{# b", "line 2: a comment has no end"],
    ["{{ x ? y }}", 'line 1: unexpected character "?"'],
    ["\n{{ a.b.c }}", "line 2: 'a' is undefined"],
    ["{% set a = {} %}\n{{ a.b['c'].d }}", "line 2: 'a.b' is undefined"],
    ["{{ 'a' + 1 }}", "line 1: unsupported operand types for +: 'str' and 'int'"],
    ["\n\n{{ 'a' | nothing }}", "line 3: unknown filter 'nothing'"],
    ["{{ 'a'.split('b', 1, 2) }}", "line 1: split takes at most 2 arguments, not 3"],
    ["{{ [1] | map('upper') }}", "line 1: a 'generator' cannot be printed: add '| list'"],
  ])("%j", (source, message) => {
    expect(() => render(source)).toThrow(message);
  });

  test("but not what a template raises", () => {
    expect(() => render("{{ raise_exception('no') }}")).toThrow(new Raised("no"));
  });
});

describe("a template reaches nothing but its values", () => {
  test.each([
    "{{ ''.constructor }}",
    "{{ [].constructor }}{{ {}.constructor }}{{ {}['__proto__'] }}{{ {}.hasOwnProperty }}",
    "{{ range.constructor }}{{ range.call }}{{ range.__globals__ }}",
    "{{ namespace().attributes }}{{ namespace().constructor }}",
    "{% for x in [1] %}{{ loop.constructor }}{{ loop.typeName }}{% endfor %}",
    "{{ ([1] | map('string')).take }}{{ {}.items().items }}{{ ('a' | safe).text }}",
    "{{ constructor }}{{ __proto__ }}{{ toString }}",
  ])("%s is empty", (source) => {
    expect(render(source)).toBe("");
  });

  test("and changes none of them", () => {
    expect(() => render("{{ x.append(1) }}", { x: [] })).toThrow("'x.append' is undefined");
    expect(() => render("{{ x.update({}) }}", { x: {} })).toThrow("'x.update' is undefined");
  });
});

describe("arguments of a tool call", () => {
  const call = { arguments: new ArgumentsJson({ city: "Oslo", days: [1] }) };

  test("are a mapping", () => {
    expect(
      render("{{ call.arguments.city }}{{ call.arguments is mapping }}{{ call.arguments | tojson }}", { call }),
    ).toBe('OsloTrue{"city": "Oslo", "days": [1]}');
    expect(render("{{ call.arguments }}", { call })).toBe("{'city': 'Oslo', 'days': [1]}");
  });

  test("are JSON where a template adds them to a text", () => {
    expect(render("{{ '```json\n' + call['arguments'] + '\n```' }}", { call })).toBe(
      '```json\n{"city": "Oslo", "days": [1]}\n```',
    );
  });

  test("other mappings cannot be added to a text", () => {
    expect(() => render("{{ 'a' + x }}", { x: {} })).toThrow("unsupported operand types");
  });
});

test("numbers are as large as Python prints them, and no larger", () => {
  expect(render("{{ 2 ** 100 }}")).toBe("1267650600228229401496703205376");
  expect(() => render("{{ 10 ** 100000 }}")).toThrow("a number grew too large");
  expect(() =>
    render("{% set ns = namespace(x=7) %}{% for i in range(60) %}{% set ns.x = ns.x * ns.x %}{% endfor %}"),
  ).toThrow("a number grew too large");
});
