import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { acceptsText } from "../../../../test/grammar/accepts.ts";
import { judge } from "../../../../test/grammar/judge.ts";
import { keyOf, legalTokens, plainJson, random, refusal, vocabularyOf } from "../../../../test/grammar/walk.ts";
import type { OutputShape } from "../../constraint.ts";
import { GrammarConstraintFactory } from "../constraint-factory.ts";

const ajv = new Ajv2020({ strict: false, validateFormats: false });
const shape = (schema: unknown, json = {}): OutputShape => ({
  kind: "json_schema",
  schema: schema as never,
  json: { ...plainJson, ...json },
});
const distinct = { type: "array", uniqueItems: true };
const strings = { ...distinct, items: { type: "string" } };

/** Tokens that hold whole items, several items, or the end of one and the start of the next. */
const PIECES =
  '"a" ["a"," ", " "," "a","a" "a"] a" a", \\u0061 \\u \\ 1,1 0,0, ,1 1, .0 1.0 e0 E-1 10e -1 [1, ] [] [], [],[] {} {},{} [[ ]] ],[ }, {" {"a": "a":1 "b":1 "a": true, true false null, null ,"a" ,"b" tru';
const vocabulary = vocabularyOf([...PIECES.split(" "), ", ", ', "', '",\n', ": ", '": ']);
const stop = vocabulary.size - 1;
const factory = new GrammarConstraintFactory(vocabulary);

describe("equal items are never generated", () => {
  test("strings, however they are spelled", () => {
    judge(strings, {
      valid: [[], ["a"], ["", "a", "ab", "b", "aa", "é", "\n", '"', "\u{1f600}"]],
      invalid: [
        ["a", "a"],
        ["", ""],
        ["x", "ab", "ab"],
      ],
    });
    const key = keyOf(shape(strings));
    for (const text of ['["a", "\\u0061"]', '["\\u00e9","é"]', '["\\n","\\u000A"]', '["\\ud83d\\ude00","\u{1f600}"]']) {
      expect(acceptsText(key, text), text).toBe(false);
    }
    expect(acceptsText(key, '["\\u0061","\\u0062","\\ud83d\\ude00","\\ud83d\\ude01"]')).toBe(true);
  });

  test("numbers, by their value", () => {
    const key = keyOf(shape({ ...distinct, items: { type: "number" } }));
    for (const text of ["[1,1.0]", "[1, 10e-1]", "[0,-0]", "[0.1,1e-1]", "[100,1E2]", "[-5,-5.00]", "[1e2,10e1,3]"]) {
      expect(acceptsText(key, text), text).toBe(false);
    }
    expect(acceptsText(key, "[1,10,-1,1.5,1e1,0.1]")).toBe(false);
    expect(acceptsText(key, "[1,10,-1,1.5,1e3,0.1, 100]")).toBe(true);
  });

  test("objects, in whatever order", () => {
    const items = { type: "object", properties: { a: { type: "integer" }, b: {} }, required: ["a"] };
    const schema = { ...distinct, items };
    const key = keyOf(shape(schema, { freeOrder: true }));
    expect(acceptsText(key, '[{"a":1,"b":2},{"a":1},{"b":2,"a":2}]')).toBe(true);
    expect(acceptsText(key, '[{"a":1,"b":[{}]},{"b": [ {} ] , "a":1.0}]')).toBe(false);
    judge(schema, {
      valid: [[{ a: 1 }, { a: 1, b: "" }, { a: 1, b: [] }, { a: 1, b: {} }, { a: 1, b: [0] }]],
      invalid: [[{ a: 1 }, { a: 2 }, { a: 1 }]],
    });
  });

  test("a name that comes twice does not hide an equal item", () => {
    const key = keyOf(shape({ ...distinct, items: { type: "object" } }));
    expect(acceptsText(key, '[{"a":1},{"a":2,"a":1}]')).toBe(false);
    expect(acceptsText(key, '[{"a":1},{"a":2,"\\u0061')).toBe(false);
    expect(acceptsText(key, '[{"a":1},{"a":2,"ab":1}]')).toBe(true);
  });

  test("values of any type", () => {
    judge(distinct, {
      valid: [[1, "1", [1], ["1"], { 1: 1 }, true, "true", null, "null", [], {}, "", [[]], [{}], [null]]],
      invalid: [
        [[], []],
        [{}, {}],
        [null, 1, null],
        [
          [1, [2]],
          [1, [2]],
        ],
        [{ a: { b: 1 } }, { a: { b: 1 } }],
      ],
    });
  });
});

test("the nearest array decides: inner and outer ones are checked on their own", () => {
  judge(
    { type: "array", items: { ...distinct, items: { type: "integer" } } },
    { valid: [[[1], [1]]], invalid: [[[1, 1]]] },
  );
  judge(
    { ...distinct, items: { type: "array", items: { type: "integer" } } },
    { valid: [[[1, 1], [1], []]], invalid: [[[1], [1]]] },
  );
  judge(
    { ...distinct, items: { ...distinct, items: { type: "integer" } } },
    {
      valid: [
        [
          [1, 2],
          [2, 1],
        ],
      ],
      invalid: [
        [[1, 1]],
        [
          [1, 2],
          [1, 2],
        ],
      ],
    },
  );
});

test("a recursive schema", () => {
  const tree = {
    $ref: "#/$defs/node",
    $defs: {
      node: {
        type: "object",
        properties: { v: { type: "integer" }, kids: { ...distinct, items: { $ref: "#/$defs/node" } } },
        required: ["v"],
      },
    },
  };
  judge(tree, {
    valid: [{ v: 1, kids: [{ v: 1 }, { v: 1, kids: [] }, { v: 1, kids: [{ v: 1 }] }] }],
    invalid: [
      { v: 1, kids: [{ v: 1 }, { v: 1 }] },
      { v: 1, kids: [{ v: 2, kids: [{ v: 1 }, { v: 1 }] }] },
    ],
  });
});

test("beside an alternative that allows equal items, only distinct ones are generated while both may hold", () => {
  const schema = {
    anyOf: [
      { ...distinct, items: { type: "string" } },
      { type: "array", items: { enum: [1] }, minItems: 3 },
    ],
  };
  judge(schema, { valid: [["a", "b"], [1, 1, 1], []], invalid: [["a", "a"], [1]] });
});

test.each([
  [
    { ...distinct, prefixItems: [{ type: "integer" }, { type: "string" }], items: { type: "integer" } },
    [[1, "a", 2]],
    [[1, "a", 1]],
  ],
  [
    { ...distinct, items: { type: "string" }, contains: { const: "x" }, maxItems: 3 },
    [["a", "x", "b"]],
    [
      ["a", "b"],
      ["x", "x"],
    ],
  ],
  [
    { ...distinct, items: { enum: ["a", "b"] } },
    [["a", "b"], ["b", "a"], []],
    [
      ["a", "a"],
      ["a", "b", "a"],
    ],
  ],
  [{ ...distinct, items: { type: "boolean" }, minItems: 2 }, [[true, false]], [[true], [true, true]]],
  [{ ...distinct, maxItems: 2 }, [["a", 1]], [["a", "b", "c"]]],
  [{ ...distinct, items: { type: "string", minLength: 1 } }, [["a", "b"]], [["a", ""]]],
])("%j", (schema, valid, invalid) => {
  judge(schema, { valid, invalid });
});

test.each([
  [{ ...distinct, items: { enum: [1, 2] }, minItems: 3 }, /too few values for distinct items, at #/],
  [
    { ...distinct, prefixItems: [{ enum: [1, 2] }, { const: 1 }], minItems: 2 },
    /"uniqueItems" needs 2 different items/,
  ],
  [{ ...distinct, contains: { const: 1 }, maxContains: 1 }, /"uniqueItems" is not supported beside this "contains"/],
  [{ ...distinct, contains: { const: 1 }, minContains: 2 }, /too few values for distinct items|needs 2 different/],
])("what might run out of values is refused: %j", (schema, expected) => {
  expect(refusal(shape(schema))).toMatch(expected);
});

/** Hardly any values, so that walks meet the same ones again and again. */
const NARROW = [
  strings,
  distinct,
  { ...distinct, items: { type: "number" } },
  { ...distinct, items: { type: "integer", minimum: 0, maximum: 12 } },
  { ...distinct, items: { type: "integer", minimum: 1, maximum: 3 }, minItems: 3 },
  { ...distinct, items: { type: "string", maxLength: 1, pattern: "^[ab]*$" } },
  { ...distinct, items: { type: "string", maxLength: 3, pattern: "^[ab\\n]+$" }, minItems: 2 },
  { ...distinct, items: { enum: ["a", "ab", "abc", "b", 1, 1.5, null, true, [], ["a"], {}, { a: 1 }] }, minItems: 4 },
  { ...distinct, items: { enum: Array.from({ length: 12 }, (_, i) => `item-${i}`) }, minItems: 12 },
  {
    ...distinct,
    items: {
      type: "object",
      properties: { a: { enum: [1, 2] }, b: { type: "boolean" } },
      required: ["a"],
      additionalProperties: false,
    },
  },
  {
    ...distinct,
    items: { type: "object", patternProperties: { "^[ab]$": { enum: [1, 2] } }, additionalProperties: false },
  },
  { ...distinct, items: { ...distinct, items: { enum: ["a", "b"] }, minItems: 1 } },
  { ...distinct, items: { ...distinct, items: { enum: ["a", "b"] }, minItems: 2 } },
  { ...distinct, items: { type: "object", properties: { t: { ...distinct, items: { enum: ["a", "b"] } } } } },
  {
    ...distinct,
    prefixItems: [{ enum: ["a", "b"] }, { enum: ["a", "b", "c"] }],
    items: { enum: ["a", "b", "c", "d"] },
  },
  {
    anyOf: [
      { ...distinct, items: { enum: ["a", "b", 1] } },
      { type: "array", items: { enum: ["a", 1] }, minItems: 4 },
    ],
  },
  { ...distinct, items: { type: ["null", "boolean"] } },
  { ...distinct, items: { type: ["null", "string"], maxLength: 0 } },
  { ...distinct, items: { anyOf: [{ const: "a" }, { type: "integer" }] }, minItems: 5 },
  {
    ...distinct,
    items: { type: "object", properties: { a: { const: "x" }, b: { type: "integer" } }, required: ["a", "b"] },
    minItems: 3,
  },
];

test.each(NARROW)("random walks end in valid arrays: %j", (schema) => {
  const validate = ajv.compile(schema);
  for (const json of [{}, { compact: true }, { freeOrder: true }, { whitespacePattern: " " }]) {
    const key = keyOf(shape(schema, json));
    for (let seed = 0; seed < 6; seed++) {
      const text = walk(key, seed);
      expect(validate(JSON.parse(text)), text).toBe(true);
    }
  }
});

/** Prefers a small alphabet, and later whatever ends the text. Takes forced tokens as the engine does. */
function walk(key: string, seed: number): string {
  const draw = random(seed);
  const constraint = factory.create(key, [stop], false);
  const favourites = new Set([...'ab01",[{:.'].map((char) => char.charCodeAt(0)));
  const closers = new Set([...'"]}'].map((char) => char.charCodeAt(0)));
  const tokens: number[] = [];
  while (tokens.length < 3000) {
    const legal = legalTokens(constraint.mask()!, vocabulary.size);
    const late = tokens.length > 60;
    if (legal.includes(stop) && (late || draw() < 0.2)) return textOf(tokens);
    const favoured = legal.filter((id) => (late ? closers.has(id) : favourites.has(id) || id > 255));
    const pool = favoured.length > 0 && draw() < 0.8 ? favoured : legal;
    const next = pool[Math.floor(draw() * pool.length)]!;
    if (next === stop) return textOf(tokens);
    constraint.accept(next);
    tokens.push(next);
    for (const id of constraint.forced()) {
      expect(legalTokens(constraint.mask()!, vocabulary.size)).toEqual([id]);
      constraint.accept(id);
      tokens.push(id);
    }
  }
  throw new Error(`no end: ${textOf(tokens)}`);
}

function textOf(tokens: readonly number[]): string {
  const { bytes, offsets } = vocabulary;
  return Buffer.concat(tokens.map((id) => bytes.subarray(offsets[id]!, offsets[id + 1]!))).toString("utf8");
}
