// The engine-side constraint: masks against brute force, stop ids, lifting, forced tokens, rations, reasoning, tools.

import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { unpackProgram } from "../../src/grammar/automaton/program.ts";
import type { OutputShape } from "../../src/grammar/constraint.ts";
import { GrammarConstraintFactory } from "../../src/grammar/match/constraint-factory.ts";
import { Matcher } from "../../src/grammar/match/matcher.ts";
import { tokenVocabulary } from "../../src/grammar/match/token-vocabulary.ts";
import { createReplyParser } from "../../src/text/create-reply-parser.ts";
import { acceptsText } from "./accepts.ts";
import { schemas } from "./schemas.ts";
import { byteVocabulary, clumpedVocabulary, keyOf, legalTokens, plainJson, random, refusal, Walker } from "./walk.ts";

const schema = (value: unknown): OutputShape => ({ kind: "json_schema", schema: value as never, json: plainJson });
const bytes = new Walker(byteVocabulary);
const clumps = new Walker(clumpedVocabulary);
const stopId = clumpedVocabulary.size - 1;

test("masks are exactly the tokens the automaton can follow", () => {
  const shapes: OutputShape[] = [
    ...Object.values(schemas).map(schema),
    schema({
      type: "object",
      properties: { s: { type: "string", minLength: 200, maxLength: 900 }, t: { type: "string", maxLength: 400 } },
      required: ["s"],
    }),
    { kind: "regex", pattern: "[ab]{3,500}c|(?:x{1,300}y)*" },
    { kind: "grammar", source: 'root ::= e\ne ::= e "+" e | "(" e ")" | [a-z]+ | "true"' },
  ];
  const { bytes: all, offsets, size } = clumpedVocabulary;
  for (const [index, shape] of shapes.entries()) {
    const key = keyOf(shape);
    const matcher = new Matcher(unpackProgram(key.slice(64)));
    const constraint = clumps.factory.create(key, [stopId], false);
    const draw = random(index);
    let at = matcher.start();
    for (let step = 0; step < 40; step++) {
      const legal = legalTokens(constraint.mask()!, size);
      const expected = Array.from({ length: size }, (_, id) => id).filter((id) => {
        if (id === stopId) return at.accepting;
        return matcher.advanceBytes(at, all.subarray(offsets[id]!, offsets[id + 1]!)) !== null;
      });
      expect(legal).toEqual(expected);
      const next = legal[Math.floor(draw() * legal.length)]!;
      if (next === stopId) break;
      constraint.accept(next);
      at = matcher.advanceBytes(at, all.subarray(offsets[next]!, offsets[next + 1]!))!;
    }
  }
});

describe("ends", () => {
  const key = keyOf({ kind: "choice", choices: ["ab", "abc"] });
  const legal = (constraint: { mask(): Int32Array | null }) => legalTokens(constraint.mask()!, byteVocabulary.size);
  const [a, b, c] = [0x61, 0x62, 0x63];

  test("stop ids are legal only where the text may end, and alone where it must", () => {
    // 0x63 is an ordinary token that the request also stops at.
    const constraint = bytes.factory.create(key, [256, c], false);
    expect(legal(constraint)).toEqual([a]);
    constraint.accept(a);
    expect(legal(constraint)).toEqual([b]);
    constraint.accept(b);
    expect(legal(constraint)).toEqual([c, 256]);
    const other = bytes.factory.create(key, [256], false);
    for (const id of [a, b, c]) other.accept(id);
    expect(legal(other)).toEqual([256]);
  });

  test("under ignore_eos the mask is lifted when the text is complete or was ended", () => {
    const complete = bytes.factory.create(key, [256], true);
    for (const id of [a, b, c]) complete.accept(id);
    expect(complete.mask()).toBeNull();
    complete.accept(7);
    expect(complete.mask()).toBeNull();
    const ended = bytes.factory.create(key, [256], true);
    for (const id of [a, b]) ended.accept(id);
    expect(legal(ended)).toEqual([c, 256]);
    ended.accept(256);
    expect(ended.mask()).toBeNull();
  });

  test("an illegal token is an error of this sequence", () => {
    const constraint = bytes.factory.create(key, [256], false);
    expect(() => constraint.accept(c)).toThrow(/token 99 is not legal/);
    expect(() => constraint.accept(256)).toThrow(/not legal/);
  });

  test("a vocabulary that cannot spell the constraint is an error, not a hang", () => {
    const few = { size: 2, bytes: Uint8Array.of(0x61), offsets: Int32Array.of(0, 1, 1) };
    const constraint = new GrammarConstraintFactory(few).create(key, [1], false);
    constraint.accept(0);
    expect(() => constraint.mask()).toThrow(/No token of this model's vocabulary/);
  });
});

describe("forced tokens", () => {
  test("are those with exactly one legal token per position", () => {
    const constraint = bytes.factory.create(keyOf(schema({ const: { name: "Ada" } })), [256], false);
    constraint.accept(0x7b);
    expect(constraint.forced()).toEqual([]); // a space, a line break or the key
    constraint.accept(0x22);
    expect(bytes.textOf(constraint.forced())).toBe('name":');
    const compact = bytes.factory.create(keyOf({ kind: "choice", choices: ["only this"] }), [256], false);
    expect(bytes.textOf(compact.forced())).toBe("only this");
    expect(clumps.factory.create(keyOf({ kind: "choice", choices: ["hello"] }), [stopId], false).forced()).toEqual([]);
  });

  test("change nothing: the masks along them hold one token each", () => {
    const key = keyOf(schema(schemas["a person"]));
    const draw = random(3);
    const constraint = clumps.factory.create(key, [stopId], false);
    for (let step = 0; step < 80; step++) {
      for (const token of constraint.forced()) {
        expect(legalTokens(constraint.mask()!, clumpedVocabulary.size)).toEqual([token]);
        constraint.accept(token);
      }
      const legal = legalTokens(constraint.mask()!, clumpedVocabulary.size);
      const next = legal[Math.floor(draw() * legal.length)]!;
      if (next === stopId) break;
      constraint.accept(next);
    }
  });
});

test("a grammar too ambiguous to follow ends its own sequence and leaves the grammar usable", () => {
  const source = 'root ::= e\ne ::= e e | e e e | [a-z ] | ""';
  const key = keyOf({ kind: "grammar", source });
  const run = () => {
    const constraint = clumps.factory.create(key, [stopId], false);
    for (let step = 0; step < 3000; step++) {
      constraint.mask();
      constraint.accept(0x61);
    }
  };
  expect(run).toThrow(/too ambiguous/);
  expect(run).toThrow(/too ambiguous/);
});

describe("reasoning comes first", () => {
  const shape: OutputShape = { kind: "choice", choices: ["yes", "no"] };
  test("open: free text, then the end marker, then the constraint", () => {
    const key = keyOf(shape, { start: "<think>", end: "</think>", mode: "open" });
    expect(acceptsText(key, "let me </think see</think>\n\nyes")).toBe(true);
    expect(acceptsText(key, "</think>no")).toBe(true);
    expect(acceptsText(key, "yes")).toBe(false);
    expect(acceptsText(key, "hm</think>maybe")).toBe(false);
    // No stop id before the constrained part is complete.
    expect(acceptsText(key, "just a thought")).toBe(false);
  });

  test("optional: at once, or after the one token that opens a thought", () => {
    const key = keyOf(shape, { start: "<think>", end: "</think>", mode: "optional" });
    const seen = new Set<string>();
    for (let seed = 0; seed < 40; seed++) {
      const { text, finished } = clumps.walk(key, seed, 20_000, 20_000);
      expect(finished).toBe(true);
      expect(text).toMatch(/^(<think>.*<\/think>\n{0,2})?(yes|no)$/su);
      seen.add(text.startsWith("<think>") ? "thought" : text);
    }
    expect([...seen].sort()).toEqual(["no", "thought", "yes"]);
    // Not in pieces: that would take probability away from the constraint in models that do not think.
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
  test.each(["hermes", "llama3_json", "pythonic"] as const)("%s always parses and validates", (format) => {
    for (const parallel of [true, false]) {
      const key = keyOf({ kind: "tool_calls", format, tools, parallel });
      for (let seed = 0; seed < 25; seed++) {
        const { text, finished } = (seed % 2 ? clumps : bytes).walk(key, seed, 120);
        expect(finished).toBe(true);
        const parser = createReplyParser({ reasoning: null, tools: format });
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
  ])("a function with the parameters %j is called with others: %s", (declared, others) => {
    const one = [{ name: "f", parameters: declared }];
    const key = keyOf({ kind: "tool_calls", format: "llama3_json", tools: one, parallel: false });
    expect(acceptsText(key, '{"name": "f", "parameters": {}}')).toBe(true);
    expect(acceptsText(key, '{"name": "f", "parameters": {"x": 1}}')).toBe(others);
  });
  test.each([
    ["pythonic", "größe", /tool "größe": the name cannot be written as a pythonic call/],
    ["pythonic", "two words", /cannot be written/],
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

test("a vocabulary keeps special tokens out of texts, except markers", () => {
  const pieces = ["<s>", "</think>", "a", "▁b"];
  const encoder = new TextEncoder();
  const source = {
    vocabSize: 4,
    bytes: (id: number) => encoder.encode(pieces[id]!.replace("▁", " ")),
    piece: (id: number) => pieces[id]!,
    isSpecial: (id: number) => id < 2,
  };
  const vocabulary = tokenVocabulary(source, 6, ["</think>"]);
  expect([...vocabulary.offsets]).toEqual([0, 0, 8, 9, 11, 11, 11]);
  expect(new TextDecoder().decode(vocabulary.bytes)).toBe("</think>a b");
});

test("SentencePiece vocabularies: word-boundary pieces and byte fallback", () => {
  const words = ["▁", "▁the", "▁yes", "yes", "ye", "▁{", "{", '"', '":', "▁1", "name", '▁"', "}", "é", "▁中"];
  const pieces = [
    "<unk>",
    "<s>",
    "</s>",
    ...Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`),
    ...words,
  ];
  const encoder = new TextEncoder();
  const vocabulary = tokenVocabulary(
    {
      vocabSize: pieces.length,
      bytes: (id) => (id >= 3 && id < 259 ? Uint8Array.of(id - 3) : encoder.encode(pieces[id]!.replaceAll("▁", " "))),
      piece: (id) => pieces[id]!,
      isSpecial: (id) => id < 3,
    },
    pieces.length + 5, // a padded output layer
  );
  const factory = new GrammarConstraintFactory(vocabulary);
  const generate = (key: string, seed: number): string => {
    const constraint = factory.create(key, [2], false);
    const draw = random(seed);
    const out: number[] = [];
    for (let step = 0; step < 4000; step++) {
      const legal = legalTokens(constraint.mask()!, vocabulary.size);
      const next = legal[Math.floor(draw() * legal.length)]!;
      if (next === 2) break;
      out.push(...vocabulary.bytes.subarray(vocabulary.offsets[next]!, vocabulary.offsets[next + 1]!));
      constraint.accept(next);
    }
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(out));
  };
  const choice = keyOf({ kind: "choice", choices: ["yes", " the yes", "中é"] });
  const named = keyOf(
    schema({ type: "object", properties: { name: { type: "string", maxLength: 8 } }, required: ["name"] }),
  );
  for (let seed = 0; seed < 30; seed++) {
    expect(["yes", " the yes", "中é"]).toContain(generate(choice, seed));
    expect(JSON.parse(generate(named, seed))).toHaveProperty("name");
  }
});
