// EBNF, Lark, choices and structural tags: exact acceptance, agreement with XGrammar, errors with their place.

import { describe, expect, test } from "vitest";
import { acceptsText } from "./accepts.ts";
import { byteVocabulary, clumpedVocabulary, keyOf, plainJson, refusal, Walker } from "./walk.ts";
import { xgrammar, accepts as xgrammarAccepts } from "./xgrammar.ts";

const walkers = [new Walker(byteVocabulary), new Walker(clumpedVocabulary)];

const sql = `
root ::= select_statement
select_statement ::= "SELECT " column " from " table " where " condition
column ::= "col_1 " | "col_2 "   # two columns
table ::= "table_1 " | "table_2 "
condition ::= column "= " number
number ::= "1 " | "2 "
`;
const arithmetic = 'root ::= expr\nexpr ::= expr ("+" | "*") expr | "(" expr ")" | [0-9]{1,3}';
const rightRecursive = 'root ::= "[" items "]"\nitems ::= [a-z]+ | [a-z]+ "," items';
const nullable = 'root ::= a b c\na ::= "x"*\nb ::= ("y" a)? \nc ::= a | "z" "é"+';
const escapes = 'root ::= "\\"\\\\\\n\\u00e9" [^"\\\\\\n]{2} [\\x41-C\\-]';

describe("EBNF", () => {
  test.each([
    [sql, ["SELECT col_1  from table_2  where col_2 = 1 "], ["SELECT col_3", ""]],
    [arithmetic, ["1", "12+(3*4)+5", "((7))"], ["", "1+", "(1", "1234"]],
    [rightRecursive, ["[a]", "[ab,c,d]"], ["[]", "[a,]"]],
    [nullable, ["", "xxyxx", "zéé", "xyz\u00e9"], ["z", "yy"]],
    [escapes, ['"\\\néabA', '"\\\nézz-'], ['"\\\néa"A']],
  ])("%s", async (source, yes, no) => {
    const key = keyOf({ kind: "grammar", source });
    for (const text of yes) expect(acceptsText(key, text), text).toBe(true);
    for (const text of no) expect(acceptsText(key, text), text).toBe(false);
    const judge = await xgrammar.Grammar.fromEBNF(source);
    for (const walker of walkers) {
      for (let seed = 0; seed < 10; seed++) {
        const { text } = walker.walk(key, seed, 20, 400);
        if (acceptsText(key, text)) expect(await xgrammarAccepts(judge, text), text).toBe(true);
      }
    }
  });

  test("lists of any length come back to the same configurations", () => {
    const walker = walkers[0]!;
    const constraint = walker.factory.create(keyOf({ kind: "grammar", source: rightRecursive }), [], false);
    constraint.accept(0x5b);
    for (let i = 0; i < 20_000; i++) for (const char of "ab,") constraint.accept(char.charCodeAt(0));
    constraint.accept(0x61);
    constraint.accept(0x5d);
    expect(constraint.mask()).toBeNull();
  });

  test("refused, with line and column", () => {
    const message = (source: string) => refusal({ kind: "grammar", source });
    expect(message('root ::= "a" missing')).toBe("invalid grammar: rule missing is not defined, at line 1, column 14");
    expect(message('root ::= "a"\nroot ::= "b"')).toMatch(/defined twice, at line 2, column 1/);
    expect(message('root ::= "a')).toMatch(/unclosed string, at line 1, column 10/);
    expect(message('root ::= ("a"')).toMatch(/unclosed \(, at line 1, column 10/);
    expect(message('a ::= "b"')).toMatch(/no rule named root/);
    expect(message("root ::= root")).toMatch(/can never be satisfied/);
    expect(message("root ::= [z-a]")).toMatch(/wrong order/);
    expect(message("   ")).toMatch(/the grammar is empty/);
    expect(message(`root ::= ${"(".repeat(5000)}`)).toMatch(/nested deeper than 200/);
  });
});

describe("Lark", () => {
  const select = `
    start: select_statement
    select_statement: "SELECT" column "from" table ("where" condition)?
    column: "col_1" | "col_2"   // columns
    ?table: /table_\\d/i -> tab
    condition: column "=" NUMBER
    %import common.NUMBER
    %import common.WS
    %ignore WS
  `;
  test("rules, terminals, imports and %ignore", () => {
    const key = keyOf({ kind: "grammar", source: select });
    for (const text of [
      "SELECT col_1 from TABLE_3",
      "SELECT  col_1\nfrom table_3 where col_2=1.5 ",
      "SELECTcol_1fromtable_1",
    ]) {
      expect(acceptsText(key, text), text).toBe(true);
    }
    expect(acceptsText(key, "SELECT col_1 from table_x")).toBe(false);
    expect(acceptsText(key, "SEL ECT col_1 from table_1")).toBe(false);
  });

  test("the rest of the notation", () => {
    const source = `
      first: "a"~2 "b"~1..3 ["c"] D+
           | "x".."z" _e*
      D.2: "0".."4" | "Q"i
      !_e: "(" first ")"
    `;
    const key = keyOf({ kind: "grammar", source });
    for (const text of ["aab0", "aabbbc44q", "x", "y(aabQ)(z)"]) expect(acceptsText(key, text), text).toBe(true);
    for (const text of ["ab0", "aabbbb0", "aab5", "w"]) expect(acceptsText(key, text), text).toBe(false);
  });

  test("refused, with line and column", () => {
    const message = (source: string) => refusal({ kind: "grammar", source });
    expect(message("start: missing")).toBe("invalid Lark grammar: missing is not defined, at line 1, column 8");
    expect(message('start: "a"\n%declare X')).toMatch(/%declare is not supported, at line 2, column 1/);
    expect(message("start: a{b}")).toMatch(/templates are not supported/);
    expect(message("start: /(/")).toMatch(/unclosed group/);
    expect(message("%import common.NOPE\nstart: NOPE")).toMatch(/common.NOPE does not exist/);
    expect(message("just some words")).toMatch(/expected a rule/);
  });
});

test("choices are exact, ten thousand of them are cheap", () => {
  const choices = Array.from({ length: 10_000 }, (_, i) => `choice ${i * 7919}`);
  const key = keyOf({ kind: "choice", choices });
  const allowed = new Set(choices);
  for (let seed = 0; seed < 50; seed++) {
    const { text, finished } = walkers[seed % 2]!.walk(key, seed);
    expect(finished && allowed.has(text)).toBe(true);
  }
  const few = keyOf({ kind: "choice", choices: ["a", "ab", "", "\u{1f600}"] });
  const seen = new Set(Array.from({ length: 60 }, (_, seed) => walkers[0]!.walk(few, seed).text));
  expect([...seen].sort()).toEqual(["", "a", "ab", "\u{1f600}"]);
});

describe("structural tags", () => {
  const integer = { type: "json_schema", json_schema: { type: "integer" } };
  const tag = (name: string, content: unknown = integer) => ({
    type: "tag",
    begin: `<${name}>`,
    content,
    end: `</${name}>`,
  });
  const formats: Record<string, unknown> = {
    triggered: {
      type: "triggered_tags",
      triggers: ["<"],
      tags: [tag("a"), tag("b", { type: "regex", pattern: "[xy]+" })],
    },
    "triggered at least once": {
      type: "triggered_tags",
      triggers: ["<a", "<b"],
      tags: [tag("a"), tag("b")],
      at_least_one: true,
    },
    "triggered only once": { type: "triggered_tags", triggers: ["<a"], tags: [tag("a")], stop_after_first: true },
    separated: { type: "tags_with_separator", separator: ", ", tags: [tag("a"), tag("b")], at_least_one: true },
    "sequence and or": {
      type: "sequence",
      elements: [
        { type: "const_string", value: "so: " },
        { type: "or", elements: [tag("a"), { type: "grammar", grammar: 'root ::= "k"+' }] },
      ],
    },
    "text until the end": tag("a", { type: "any_text" }),
  };
  const texts = [
    "",
    "plain",
    "<a>1</a>",
    "x<a>1</a>y<b>xx</b>",
    "<a>x</a>",
    "<a>1</a>, <b>2</b>",
    "<a>1</a>,",
    "so: kk",
    "so: <a>-7</a>",
    "so: ",
    "<a>any</a>",
    "<a></a>",
    "<a>x</a></a>",
    "<c>",
    "<a>1</a><a>2</a>",
    "<<a>1</a>",
    "pre <a>1</a> post",
  ];

  test.each(Object.entries(formats))("%s, like XGrammar", async (_, format) => {
    const tagValue = { type: "structural_tag", format };
    const key = keyOf({ kind: "structural_tag", tag: tagValue as never, json: { ...plainJson, compact: true } });
    const judge = await xgrammar.Grammar.fromStructuralTag(tagValue as never);
    for (const text of texts)
      expect([text, acceptsText(key, text)]).toEqual([text, await xgrammarAccepts(judge, text)]);
  });

  test("the older form", () => {
    const key = keyOf({
      kind: "structural_tag",
      tag: {
        type: "structural_tag",
        structures: [{ begin: "<f=x>", schema: { type: "boolean" }, end: "</f>" }],
        triggers: ["<f="],
      },
      json: plainJson,
    });
    expect(acceptsText(key, "hm <f=x>true</f> and <f=x>false</f>!")).toBe(true);
    expect(acceptsText(key, "hm <f=x>1</f>")).toBe(false);
    expect(acceptsText(key, "hm <f=y>")).toBe(false);
  });

  test("refused by name", () => {
    const message = (value: unknown) => refusal({ kind: "structural_tag", tag: value as never, json: plainJson });
    expect(message({})).toMatch(/needs "format"/);
    expect(message({ format: {} })).toMatch(/unknown structural-tag type null, at format/);
    expect(message({ format: { type: "tag", begin: 1 } })).toMatch(/"begin" must be a string, at format/);
    expect(message({ format: { type: "triggered_tags", triggers: ["["], tags: [tag("a")] } })).toMatch(
      /no trigger begins/,
    );
    expect(message({ format: tag("a", { type: "regex", pattern: "(" }) })).toMatch(/unclosed group.*in format.content/);
    expect(message({ format: { type: "json_schema", json_schema: { not: {} } } })).toMatch(
      /can never be satisfied, in format/,
    );
  });
});
