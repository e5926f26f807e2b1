import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createReplyParser } from "../create-reply-parser.ts";

const signatures = [
  { name: "run", parameters: null, input: null },
  { name: "f", parameters: null },
];

/** What the calls of a reply get, as [name, input or arguments]. */
function calls(pieces: readonly string[]): [string, string][] {
  const parser = createReplyParser({ reasoning: null, tools: "hermes", signatures });
  const found: [string, string][] = [];
  for (const delta of [...pieces.flatMap((piece) => parser.push(piece)), ...parser.finish()]) {
    if (delta.kind !== "tool_call") continue;
    if (delta.name !== undefined) found[delta.index] = [delta.name, ""];
    expect(delta.input === undefined).toBe(found[delta.index]![0] !== "run");
    found[delta.index]![1] += delta.input ?? delta.argumentsText ?? "";
  }
  return found;
}

const written = (name: string, args: string) => `<tool_call>{"name": "${name}", "arguments": ${args}}</tool_call>`;

describe("the text of a custom tool's call", () => {
  test("is the same however the reply is cut", () => {
    const texts = fc.string({ unit: fc.constantFrom("a", '"', "\\", "\n", "\u0001", "é", "😀", "{", "}", "u00") });
    fc.assert(
      fc.property(texts, fc.boolean(), fc.array(fc.nat(60)), (text, escapes, cuts) => {
        const json = JSON.stringify(text);
        const argument = escapes
          ? json.replace(/[\u0080-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`)
          : json;
        const reply = written("run", `{"input": ${argument}}`) + written("f", '{"input": "x"}');
        const pieces: string[] = [];
        let rest = reply;
        for (const cut of cuts) {
          pieces.push(rest.slice(0, cut));
          rest = rest.slice(cut);
        }
        const expected = [
          ["run", text],
          ["f", '{"input": "x"}'],
        ];
        expect(calls([...pieces, rest])).toEqual(expected);
        expect(calls(reply.split(""))).toEqual(expected);
      }),
    );
  });

  test.each([
    ['{"input": "cut', "cut"],
    ['{"input": "cut\\', "cut"],
    ['{"input": "cut\\u00e', "cut"],
    ['{"inp', ""],
    ['{ "input" :"a line\nbreak"}', "a line\nbreak"],
    ['{"input": "a", "more": 1}', "a"],
    ['{"code": "x"}', '{"code": "x"}'],
    ['{"input": 5}', '{"input": 5}'],
    ["{}", "{}"],
  ])("of %j", (args, text) => {
    for (const reply of [written("run", args), `<tool_call>{"name": "run", "arguments": ${args}`]) {
      if (reply.endsWith("}") || !/cut|inp$/.test(args)) expect(calls([reply])).toEqual([["run", text]]);
      expect(calls(reply.split(""))).toEqual(calls([reply]));
    }
  });
});
