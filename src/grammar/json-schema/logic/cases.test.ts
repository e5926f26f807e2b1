import { describe, expect, test } from "vitest";
import { judge, judgeTexts } from "../../../../test/grammar/judge.ts";
import { plainJson, refusal } from "../../../../test/grammar/walk.ts";

const ab = { type: "object", properties: { a: { type: "integer" }, b: { type: "integer" }, c: { type: "integer" } } };

describe("oneOf", () => {
  test("with required properties", () => {
    const schema = { ...ab, oneOf: [{ required: ["a"] }, { required: ["b"] }] };
    judge(schema, { valid: [{ a: 1 }, { b: 1, c: 2 }], invalid: [{ a: 1, b: 1 }, { c: 1 }, {}] });
  });

  test("with overlapping objects", () => {
    const schema = {
      oneOf: [
        { type: "object", properties: { x: { type: "integer" }, y: { type: "integer" } }, required: ["x"] },
        { type: "object", properties: { x: { type: "integer" }, z: { type: "integer" } }, required: ["z"] },
      ],
    };
    judge(schema, { valid: [{ x: 1 }, { z: 1 }, { x: 1, y: 2 }], invalid: [{ x: 1, z: 1 }, { y: 1 }, {}] });
  });

  test("with closed objects", () => {
    const closed = (...names: string[]) => ({
      type: "object",
      properties: Object.fromEntries(names.map((name) => [name, { type: "null" }])),
      additionalProperties: false,
    });
    judge(
      { oneOf: [closed("a", "b"), closed("a", "c")] },
      { valid: [{ b: null }, { a: null, c: null }], invalid: [{}, { a: null }, { b: null, c: null }] },
    );
  });

  test("with overlapping strings and numbers", () => {
    judge(
      {
        oneOf: [
          { type: "string", pattern: "^a" },
          { type: "string", pattern: "b$" },
        ],
      },
      { valid: ["ax", "xb"], invalid: ["ab", "x", 1] },
    );
    judge(
      {
        oneOf: [
          { type: "number", minimum: 5 },
          { type: "number", maximum: 7 },
        ],
      },
      { valid: [4, 8.5], invalid: [5, 6, 7] },
    );
    judge({ oneOf: [{ enum: [1, 2] }, { enum: [2, 3] }] }, { valid: [1, 3], invalid: [2, 4] });
  });
});

describe("not", () => {
  test.each([
    [{ ...ab, not: { required: ["a", "b"] } }, [{ a: 1 }, { b: 1, c: 1 }, {}], [{ a: 1, b: 1 }]],
    [{ ...ab, not: { anyOf: [{ required: ["a"] }, { required: ["b"] }] } }, [{}, { c: 1 }], [{ a: 1 }, { b: 1 }]],
    [{ not: { type: ["string", "null", "object", "array"] } }, [1, true], ["x", null, {}]],
    [{ type: "string", not: { enum: ["a", "bc"] } }, ["b", "abc", ""], ["a", "bc"]],
    [{ type: "string", not: { pattern: "^x|y$" } }, ["yx", ""], ["xa", "by"]],
    [{ type: "string", not: { maxLength: 2 } }, ["abc"], ["ab"]],
    [{ type: "array", not: { items: { type: "integer" } } }, [[1, "x"], [null]], [[], [1, 2]]],
    [{ type: "array", not: { contains: { const: 1 } } }, [[], [2]], [[1], [2, 1]]],
    [
      {
        type: "object",
        not: { properties: { a: { const: 1 } }, required: ["a"] },
        properties: { a: { type: "integer" } },
      },
      [{}, { a: 2 }],
      [{ a: 1 }],
    ],
    [{ type: "integer", not: { not: { minimum: 3 } } }, [3, 4], [2]],
    [{ type: "integer", not: { oneOf: [{ minimum: 3 }, { maximum: 5 }] } }, [4, 5], [2, 6]],
    [{ type: ["object", "array"], not: { const: {} } }, [{ a: 1 }, []], [{}]],
  ])("%j", (schema, valid, invalid) => {
    judge(schema, { valid, invalid });
  });

  test("additional properties cannot reintroduce what is forbidden", () => {
    judge(
      { type: "object", additionalProperties: true, not: { required: ["a"] } },
      { valid: [{}, { b: 1 }], invalid: [{ a: 1 }, { b: 1, a: 2 }] },
    );
    judge(
      { type: "object", patternProperties: { "^a": {} }, not: { required: ["aa"] } },
      { valid: [{ ab: 1 }], invalid: [{ aa: 1 }] },
    );
  });
});

describe("conditions", () => {
  test("if, then and else", () => {
    const schema = {
      type: "object",
      properties: { kind: { enum: ["a", "b"] }, x: { type: "integer" }, y: { type: "integer" } },
      required: ["kind"],
      if: { properties: { kind: { const: "a" } } },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { required: ["x"] },
      else: { required: ["y"] },
    };
    judge(schema, {
      valid: [
        { kind: "a", x: 1 },
        { kind: "b", y: 1 },
      ],
      invalid: [{ kind: "a", y: 1 }, { kind: "b", x: 1 }, { x: 1 }],
    });
  });

  test("a chain of conditions on one property compiles to one alternative per condition", () => {
    const kinds = Array.from({ length: 30 }, (_, index) => `k${index}`);
    const schema = {
      type: "object",
      properties: { kind: { enum: kinds }, v: {} },
      required: ["kind", "v"],
      allOf: kinds.map((kind, index) => ({
        if: { properties: { kind: { const: kind } }, required: ["kind"] },
        // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
        then: { properties: { v: { type: "integer", minimum: index, maximum: index + 1 } } },
      })),
    };
    judge(schema, {
      valid: [
        { kind: "k7", v: 8 },
        { kind: "k0", v: 0 },
      ],
      invalid: [
        { kind: "k7", v: 6 },
        { kind: "k30", v: 1 },
      ],
    });
  });

  test("dependentRequired, dependentSchemas and dependencies", () => {
    judge(
      { ...ab, dependentRequired: { a: ["b"] } },
      { valid: [{ a: 1, b: 1 }, { b: 1 }, {}], invalid: [{ a: 1 }, { a: 1, c: 1 }] },
    );
    judge(
      { ...ab, dependencies: { a: ["b"], b: { required: ["c"] } } },
      { valid: [{ a: 1, b: 1, c: 1 }, { c: 1 }], invalid: [{ a: 1, b: 1 }, { b: 1 }] },
    );
    const schema = {
      ...ab,
      dependentSchemas: { a: { properties: { b: { minimum: 5, multipleOf: 5 } }, minProperties: 2 } },
    };
    judge(schema, { valid: [{ a: 1, b: 5 }, { b: 1 }], invalid: [{ a: 1, b: 4 }, { a: 1 }] });
  });
});

test("recursion through allOf or beside other keywords terminates", () => {
  const schema = {
    $ref: "#/$defs/node",
    $defs: {
      base: { type: "object", properties: { id: { type: "integer" } } },
      node: {
        allOf: [{ $ref: "#/$defs/base" }],
        properties: {
          left: { $ref: "#/$defs/node", title: "the left one", maxProperties: 2 },
          right: { allOf: [{ $ref: "#/$defs/node" }], required: ["id"] },
        },
      },
    },
  };
  judge(schema, {
    valid: [{ id: 1, left: { id: 2, left: {} }, right: { id: 3, right: { id: 4 } } }],
    invalid: [{ right: {} }, { left: { id: 1, left: {}, right: { id: 1 } } }, { right: { id: 1, right: {} } }],
  });
});

test("an alternative that contradicts itself is dropped, and the others remain", () => {
  const schema = { oneOf: [{ type: "string", minimum: 3, maxLength: 2, enum: [5] }, { type: "integer" }] };
  judge(schema, { valid: [5, 6], invalid: ["x"] });
});

test("unevaluated properties and items", () => {
  const schema = {
    type: "object",
    properties: { a: { type: "integer" } },
    anyOf: [
      { properties: { b: { type: "integer" } }, required: ["b"] },
      { properties: { c: { type: "integer" } }, required: ["c"] },
    ],
    unevaluatedProperties: false,
  };
  judge(schema, { valid: [{ a: 1, b: 1 }, { c: 1 }], invalid: [{ a: 1 }, { b: 1, d: 1 }] });
  judge(
    { type: "array", prefixItems: [{ type: "integer" }], unevaluatedItems: { type: "null" } },
    { valid: [[1, null]], invalid: [[1, 2]] },
  );
});

test("too many alternatives are refused", () => {
  const choice = (n: number) => ({
    anyOf: Array.from({ length: 10 }, (_, i) => ({ properties: { [`p${n}`]: { const: i } }, required: [`p${n}`] })),
  });
  const schema = { type: "object", allOf: [choice(1), choice(2), choice(3), choice(4)] };
  expect(refusal({ kind: "json_schema", schema, json: plainJson })).toMatch(/more than 4000 alternatives/);
});

test("properties of allOf come where allOf stands, those of alternatives last", () => {
  const base = { properties: { a: {} } };
  const own = { b: { type: "integer" } };
  const order = (schema: object, valid: string, invalid: string): void =>
    judgeTexts({ type: "object", ...schema }, [valid], [invalid]);
  order({ allOf: [base], properties: own }, '{"a":1,"b":2}', '{"b":2,"a":1}');
  order({ properties: own, allOf: [base] }, '{"b":2,"a":1}', '{"a":1,"b":2}');
  order({ anyOf: [base], properties: own }, '{"b":2,"a":1}', '{"a":1,"b":2}');
});

test("a keyword that allows everything does not say which type is meant", () => {
  judgeTexts({ type: "array", items: { properties: {}, required: [] } }, ['["x",1,{}]'], []);
  judgeTexts({ type: "array", items: { format: "positiveInteger" } }, ["[1]"], []);
  judgeTexts({ type: "array", items: { properties: { a: {} } } }, ["[{}]"], ["[1]"]);
});
