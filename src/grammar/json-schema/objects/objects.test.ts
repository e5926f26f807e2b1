import { expect, test } from "vitest";
import { acceptsText } from "../../../../test/grammar/accepts.ts";
import { judge } from "../../../../test/grammar/judge.ts";
import { keyOf, plainJson } from "../../../../test/grammar/walk.ts";
import type { JsonValue } from "../keywords.ts";

test("additional properties can satisfy minProperties", () => {
  judge(
    { type: "object", minProperties: 2 },
    {
      valid: [
        { a: 1, b: 2 },
        { x: 1, y: 2, z: 3 },
      ],
      invalid: [{}, { a: 1 }],
    },
  );
  const schema = {
    type: "object",
    properties: { o: { type: "object", minProperties: 2, additionalProperties: { type: "null" } } },
  };
  judge(schema, { valid: [{ o: { a: null, b: null } }, {}], invalid: [{ o: { a: null } }, { o: { a: null, b: 1 } }] });
});

test("a name that is written twice counts as one property", () => {
  const key = keyOf({ kind: "json_schema", schema: { type: "object", minProperties: 2 }, json: plainJson });
  expect(acceptsText(key, '{"a":1,"a":2}')).toBe(false);
});

test("an optional property that no value satisfies is left out", () => {
  const schema = { type: "object", properties: { a: { type: "array", enum: ["x"] }, b: { type: "null" } } };
  judge(schema, { valid: [{ b: null }, {}], invalid: [{ a: "x" }, { a: [] }] });
});

test("a name that matches several patterns must satisfy all of their schemas", () => {
  const schema = {
    type: "object",
    patternProperties: {
      "^a": { type: ["integer", "string"] },
      b$: { type: ["integer", "null"] },
      "^ab$": { minimum: 3 },
    },
    additionalProperties: false,
  };
  judge(schema, { valid: [{ ab: 3, ax: "s", xb: null }], invalid: [{ ab: 2 }, { ab: "s" }, { xx: 1 }, { axb: null }] });
});

test("each schema of an allOf keeps its own additionalProperties", () => {
  const schema = {
    allOf: [
      { patternProperties: { "^a": { type: "null" } }, additionalProperties: { type: "integer" } },
      { properties: { b: { minimum: 5 }, ax: true }, additionalProperties: { type: ["null", "integer"] } },
    ],
    type: "object",
  };
  judge(schema, { valid: [{ b: 5 }, { ax: null }, { c: 1 }], invalid: [{ b: 4 }, { b: null }, { ax: 1 }, { c: "x" }] });
});

test.each([
  ["a list", { enum: ["a", "b"] }, { a: 1 }, { c: 1 }],
  ["alternatives", { anyOf: [{ const: "a" }, { pattern: "^x" }] }, { xy: 1 }, { b: 1 }],
  ["a negation", { not: { pattern: "^_" } }, { a: 1 }, { _a: 1 }],
  ["a length", { maxLength: 2 }, { ab: 1 }, { abc: 1 }],
])("property names restricted by %s", (_, propertyNames, valid, invalid) => {
  judge(
    { type: "object", propertyNames, additionalProperties: { type: "integer" } },
    { valid: [valid], invalid: [invalid] },
  );
});

const person = { type: "object", properties: { a: { type: "integer" }, b: { type: "null" }, c: {} }, required: ["b"] };

test("by default, properties come in declared order and no others are allowed", () => {
  const accepts = (text: string, json = {}): boolean =>
    acceptsText(keyOf({ kind: "json_schema", schema: person, json: { ...plainJson, ...json } }), text);
  expect(accepts('{"a":1,"b":null}')).toBe(true);
  expect(accepts('{"b":null,"a":1}')).toBe(false);
  expect(accepts('{"b":null,"d":1}')).toBe(false);
  expect(accepts('{"b":null,"a":1}', { freeOrder: true })).toBe(true);
  expect(accepts('{"b":null,"d":1}', { freeOrder: true })).toBe(false);
  expect(accepts('{"d":1,"b":null,"e":2}', { openObjects: true })).toBe(true);
});

test.each([2, 12])("in free order, %s optional properties can reach a minimum, but no property twice", (count) => {
  const names = Array.from({ length: count }, (_, index) => `p${index}`);
  const properties = Object.fromEntries(names.map((name) => [name, { type: "integer" }]));
  const json = { freeOrder: true };
  const pairs = [
    { p1: 1, p0: 1 },
    { p0: 1, p1: 1 },
  ];
  const closed = { type: "object", properties, additionalProperties: false };
  judge({ ...closed, minProperties: 1 }, { valid: [{ p1: 1 }, { p0: 1 }, ...pairs], invalid: [{}], json });
  judge({ ...closed, minProperties: 2 }, { valid: pairs, invalid: [{}, { p0: 1 }], json });
  judge({ ...closed, required: ["p1"], minProperties: 2 }, { valid: pairs, invalid: [{ p1: 1 }, { p0: 1 }], json });
  const accepts = (schema: JsonValue, text: string): boolean =>
    acceptsText(keyOf({ kind: "json_schema", schema, json: { ...plainJson, ...json } }), text);
  for (const name of names) {
    expect(accepts({ ...closed, minProperties: 2 }, `{"${name}":1,"${name}":2}`)).toBe(false);
  }
  const open = { ...closed, additionalProperties: true, minProperties: 3 };
  expect(accepts(open, '{"p0":1,"x":1,"p1":1}')).toBe(true);
  expect(accepts(open, '{"p0":1,"x":1}')).toBe(false);
});

test("in free order, all other rules still apply", () => {
  const free = { freeOrder: true, openObjects: true };
  judge(person, {
    valid: [
      { c: 1, b: null, a: 2 },
      { x: 1, b: null },
    ],
    invalid: [{ a: 1 }, { b: 1 }, { b: null, a: "x" }],
    json: free,
  });
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`p${index}`, { type: "integer" }]));
  const wide = {
    type: "object",
    properties: many,
    required: ["p7", "p3"],
    dependentRequired: { p1: ["p2"] },
    maxProperties: 4,
  };
  judge(wide, {
    valid: [
      { p9: 1, p3: 1, p7: 1 },
      { p2: 0, p7: 1, p1: 1, p3: 0 },
    ],
    invalid: [
      { p9: 1, p3: 1 },
      { p7: 1, p1: 1, p3: 0 },
      { p3: 1, p7: 1, p4: 1, p5: 1, p6: 1 },
    ],
    json: free,
  });
});
