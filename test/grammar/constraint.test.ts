// Constraints from end to end: reasoning before the output, forced tool calls, numbers within bounds.

import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type OutputShape, TOOL_CALL_FORMATS } from "../../src/grammar/constraint.ts";
import { createReplyParser } from "../../src/text/create-reply-parser.ts";
import { acceptsText } from "./accepts.ts";
import { byteVocabulary, clumpedVocabulary, keyOf, plainJson, refusal, Walker } from "./walk.ts";

const schema = (value: unknown): OutputShape => ({ kind: "json_schema", schema: value as never, json: plainJson });
const bytes = new Walker(byteVocabulary);
const clumps = new Walker(clumpedVocabulary);
const stopId = clumpedVocabulary.size - 1;

describe("reasoning comes first", () => {
  const shape: OutputShape = { kind: "choice", choices: ["yes", "no"] };
  test("open: free text, the end marker, then the constraint", () => {
    const key = keyOf(shape, { start: "<think>", end: "</think>", mode: "open" });
    expect(acceptsText(key, "let me </think see</think>\n\nyes")).toBe(true);
    expect(acceptsText(key, "</think>no")).toBe(true);
    expect(acceptsText(key, "yes")).toBe(false);
    expect(acceptsText(key, "hm</think>maybe")).toBe(false);
    // Stop ids are illegal until the constrained part is complete.
    expect(acceptsText(key, "just a thought")).toBe(false);
  });

  test("optional: the constraint begins at once, or after a thought that starts with the marker token", () => {
    const key = keyOf(shape, { start: "<think>", end: "</think>", mode: "optional" });
    const seen = new Set<string>();
    for (let seed = 0; seed < 40; seed++) {
      const { text, finished } = clumps.walk(key, seed, 20_000, 20_000);
      expect(finished).toBe(true);
      expect(text).toMatch(/^(<think>.*<\/think>\n{0,2})?(yes|no)$/su);
      seen.add(text.startsWith("<think>") ? "thought" : text);
    }
    expect([...seen].sort()).toEqual(["no", "thought", "yes"]);
    // If the start marker could be spelled in pieces, models that do not reason would lose probability to it.
    const constraint = clumps.factory.create(key, [stopId], false);
    expect(() => constraint.accept(0x3c)).toThrow(/not legal/);
    expect(bytes.walk(key, 1).text).toMatch(/^(yes|no)$/);
  });
});

describe("forced tool calls", () => {
  const parameters = {
    type: "object",
    properties: {
      city: { type: "string", maxLength: 12 },
      days: { type: "integer", minimum: 1, maximum: 14 },
      metric: { type: ["boolean", "null"] },
    },
    required: ["city"],
  };
  const tools = [
    { name: "get_weather", parameters },
    { name: "ping", parameters: null },
  ];
  const validate = new Ajv2020().compile(parameters);
  test.each(TOOL_CALL_FORMATS)("%s always parses and validates", (format) => {
    for (const parallel of [true, false]) {
      const key = keyOf({ kind: "tool_calls", format, tools, parallel });
      for (let seed = 0; seed < 25; seed++) {
        const { text, finished } = (seed % 2 ? clumps : bytes).walk(key, seed, 120);
        expect(finished).toBe(true);
        const parser = createReplyParser({ reasoning: null, tools: format, signatures: tools, forced: true });
        const calls: { name: string; text: string }[] = [];
        for (const delta of [...parser.push(text), ...parser.finish()]) {
          expect(delta.kind, text).toBe("tool_call");
          if (delta.kind !== "tool_call") continue;
          if (delta.name !== undefined) calls.push({ name: delta.name, text: "" });
          calls[delta.index]!.text += delta.argumentsText ?? "";
        }
        expect(calls.length).toBeGreaterThan(0);
        if (!parallel) expect(calls).toHaveLength(1);
        for (const call of calls) {
          const value: unknown = JSON.parse(call.text);
          if (call.name === "get_weather") expect(validate(value), call.text).toBe(true);
          else expect(call.name).toBe("ping");
        }
      }
    }
  });
  const open = { type: "object", additionalProperties: { type: "integer" } };
  test.each([
    [null, false],
    [{}, false],
    [{ type: "object", properties: {}, required: [], title: "t" }, false],
    [{ type: "object" }, true],
    [{ properties: {}, ...open }, true],
    [{ properties: {}, allOf: [{ properties: { x: { type: "integer" } } }] }, true],
  ])("a function with the parameters %j can be called with undeclared ones: %s", (declared, others) => {
    const one = [{ name: "f", parameters: declared }];
    const key = keyOf({ kind: "tool_calls", format: "llama3_json", tools: one, parallel: false });
    expect(acceptsText(key, '{"name": "f", "parameters": {}}')).toBe(true);
    expect(acceptsText(key, '{"name": "f", "parameters": {"x": 1}}')).toBe(others);
  });
  test.each([
    ["pythonic", "größe", /tool "größe": the name cannot be written as a pythonic call/],
    ["pythonic", "two words", /cannot be written/],
    ["kimi_k2", "two words", /cannot be written as a kimi_k2 call/],
    ["deepseek_v3", "größe", /cannot be written as a deepseek_v3 call/],
    ["glm45", "a<b", /cannot be written as a glm45 call/],
    ["hermes", "", /needs a name/],
    ["llama3_json", "", /needs a name/],
  ] as const)("%s refuses a name that could not be read back: %j", (format, name, reason) => {
    expect(refusal({ kind: "tool_calls", format, tools: [{ name, parameters: null }], parallel: false })).toMatch(
      reason,
    );
  });
});

test("numbers stay within any bounds", () => {
  const validator = new Ajv2020({ strict: false });
  const bound = fc.oneof(
    fc.integer({ min: -2000, max: 2000 }),
    fc.double({ min: -50, max: 50, noNaN: true }),
    fc.integer(),
  );
  fc.assert(
    fc.property(
      bound,
      bound,
      fc.boolean(),
      fc.boolean(),
      fc.constantFrom("integer", "number"),
      fc.nat(),
      (x, y, openLow, openHigh, type, seed) => {
        const [low, high] = x <= y ? [x, y] : [y, x];
        const value = {
          type,
          [openLow ? "exclusiveMinimum" : "minimum"]: low,
          [openHigh ? "exclusiveMaximum" : "maximum"]: high,
        };
        let key: string;
        try {
          key = keyOf(schema(value));
        } catch (error) {
          expect(String(error)).toMatch(/no number lies between|can never be satisfied/);
          return;
        }
        const validate = validator.compile(value);
        for (let i = 0; i < 5; i++) {
          const { text } = bytes.walk(key, seed + i, 25);
          expect(validate(JSON.parse(text)), `${text} in ${JSON.stringify(value)}`).toBe(true);
        }
        for (const edge of [low, high]) {
          if (Number.isInteger(edge) && validate(edge) && !Object.is(edge, -0))
            expect(acceptsText(key, String(edge)), `${edge} in ${JSON.stringify(value)}`).toBe(true);
        }
      },
    ),
    { numRuns: 150 },
  );
});
