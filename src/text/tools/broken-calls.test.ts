// Properties of every format: it does not matter where a reply is cut, and no text is lost, however broken the calls are.
import fc from "fast-check";
import { expect, test } from "vitest";
import { totalReply } from "../../../test/support/total-reply.ts";
import { TOOL_CALL_FORMATS, type ToolCallFormat } from "../../grammar/constraint.ts";

const BITS = [
  ...["[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "add", "<|tool_call|>", "<|/tool_call|>", "functools["],
  ...["<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<|python_tag|>"],
  ...[
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
  ],
  ...["function", "```json", "```", "functions.f:0", "<|tool_calls_section_begin|>", "<|tool_call_begin|>"],
  ...["<|tool_call_argument_begin|>", "<|tool_call_end|>", "<|tool_calls_section_end|>"],
  ...['{"name": "f", "arguments": {', '{"arguments": {}, "name": "f"}', '"a": 1', "{}", "{", "}", "}}", "[", "]"],
  ...[",", ";", "[f(", "a=", "'x'", ")", "None", "\n", " ", '"', "\\", "plain", "<", "<|", "é", "\u{1f600}", "1"],
];

const OBJECT = '{"name": "f", "arguments": {"a": 1}';

/** What a model may have written when it goes astray. */
const BEGINNINGS: Record<ToolCallFormat, string[]> = {
  hermes: [`<tool_call>${OBJECT}`, `<tool_call>${OBJECT}, `, '<tool_call>{"name": "f", "arguments": {"a": ['],
  llama3_json: [OBJECT, `${OBJECT}, `, `${OBJECT}}; `, '{"type": "function", "name": "f", ', `${OBJECT}}\n{"type": `],
  pythonic: ["[f(a=1", "[f(a='''x", '[f(a=""', "[f(a='", "[f(a=1, b=[", "[f(a={'x': 2, "],
  mistral: [`[TOOL_CALLS][${OBJECT}`, `[TOOL_CALLS][${OBJECT}, `, '[TOOL_CALLS]f[ARGS]{"a": 1'],
  granite: [`<|tool_call|>[${OBJECT}`, `[${OBJECT}, `],
  phi4_mini_json: [`functools[${OBJECT}`, `<|tool_call|>[${OBJECT}}]`],
  deepseek_v3: [
    '<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{"a": [',
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function",
  ],
  deepseek_v31: ['<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": [', '<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": "'],
  kimi_k2: ['<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": "', "<|tool_call_begin|>functions.f:0"],
  glm45: [
    "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1",
    "<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value>",
    "<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value><arg_key>",
    "<tool_call>get_weather<arg_key>city</arg_key><arg_value>",
  ],
};

/** No JSON, not even inside a string. */
const WORDS = ["\nalpha", "\nbeta", "\ngamma"];

/** A reply of a format, and where it is cut. */
const replies = fc.constantFrom(...TOOL_CALL_FORMATS).chain((format) =>
  fc.record({
    format: fc.constant(format),
    text: fc
      .tuple(
        fc.constantFrom("", ...BEGINNINGS[format]),
        fc.array(fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...BITS) }, fc.constantFrom(...WORDS)), {
          maxLength: 14,
        }),
      )
      .map(([beginning, parts]) => beginning + parts.join("")),
    cuts: fc.array(fc.nat(300), { maxLength: 8 }),
  }),
);

test("any split of any text gives the same reply, in every format", () => {
  fc.assert(
    fc.property(replies, fc.boolean(), ({ format, text, cuts }, forced) => {
      const sorted = [0, ...cuts.map((cut) => cut % (text.length + 1)).sort((a, b) => a - b), text.length];
      const pieces = sorted.slice(1).map((end, index) => text.slice(sorted[index]!, end));
      const whole = totalReply(format, [text], forced);
      expect(totalReply(format, pieces, forced)).toEqual(whole);
      expect(totalReply(format, Array.from(text), forced)).toEqual(whole);
      if (whole.calls.length === 0 && !forced) expect(whole.content).toBe(text);
    }),
    { numRuns: 5000 },
  );
});

test("no word is lost, however broken the calls are", () => {
  fc.assert(
    fc.property(replies, ({ format, text }) => {
      const given = JSON.stringify(totalReply(format, [text]));
      for (const word of WORDS.filter((each) => text.includes(each))) expect(given).toContain(word.trim());
    }),
    { numRuns: 5000 },
  );
});
