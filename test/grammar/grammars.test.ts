// Choices and structural tags: they accept exactly what they should, agree with XGrammar, and report errors with positions.

import { describe, expect, test } from "vitest";
import { acceptsText } from "./accepts.ts";
import { byteVocabulary, clumpedVocabulary, keyOf, plainJson, refusal, Walker } from "./walk.ts";
import { xgrammar, accepts as xgrammarAccepts } from "./xgrammar.ts";

const walkers = [new Walker(byteVocabulary), new Walker(clumpedVocabulary)];

test("choices are exact, and ten thousand of them are cheap", () => {
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

  test("accepts the older form", () => {
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

  test("errors name what is wrong", () => {
    const message = (value: unknown) => refusal({ kind: "structural_tag", tag: value as never, json: plainJson });
    expect(message({})).toMatch(/needs "format"/);
    expect(message({ format: {} })).toMatch(/unknown structural-tag type null, at format/);
    expect(message({ format: { type: "tag", begin: 1 } })).toMatch(/"begin" must be a string, at format/);
    expect(message({ format: { type: "triggered_tags", triggers: ["["], tags: [tag("a")] } })).toMatch(
      /no trigger is a prefix of "/,
    );
    expect(message({ format: tag("a", { type: "regex", pattern: "(" }) })).toMatch(/unclosed group.*in format.content/);
    expect(message({ format: { type: "json_schema", json_schema: { not: {} } } })).toMatch(
      /can never be satisfied, in format/,
    );
  });
});
