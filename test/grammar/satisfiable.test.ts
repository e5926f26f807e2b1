// Schemas that can be satisfied in some way that is easy to miss. Outputs must validate in the draft that they declare, and
// be readable by parsers that refuse an object with a repeated name.

import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import type { JsonOptions } from "../../src/grammar/constraint.ts";
import { acceptsText } from "./accepts.ts";
import { repeatedNames } from "./repeated-names.ts";
import { byteVocabulary, clumpedVocabulary, keyOf, plainJson, refusal, Walker } from "./walk.ts";

const walkers = [new Walker(byteVocabulary), new Walker(clumpedVocabulary)];
const newest = new Ajv2020({ strict: false, validateFormats: false, multipleOfPrecision: 9 });
const draft7 = new Ajv({ strict: false, validateFormats: false });

function compiled(schema: object, json: Partial<JsonOptions> = {}): string {
  return keyOf({ kind: "json_schema", schema: schema as never, json: { ...plainJson, ...json } });
}

function generates(schema: object, json: Partial<JsonOptions> = {}): void {
  const key = compiled(schema, json);
  const ajv = JSON.stringify(schema).includes("draft-07") ? draft7 : newest;
  const validate = ajv.compile(schema);
  for (const walker of walkers) {
    for (let seed = 0; seed < 12; seed++) {
      const { text, finished } = walker.walk(key, seed, 60);
      expect(finished, text).toBe(true);
      expect(validate(JSON.parse(text)), text).toBe(true);
      expect(repeatedNames(text), text).toEqual([]);
    }
  }
}

describe("objects whose names the schema leaves open", () => {
  test.each([
    { type: "object", minProperties: 4 },
    { type: "object", minProperties: 12, additionalProperties: { type: "integer" } },
    { type: "object", patternProperties: { "^[ab]$": { type: "integer" } }, additionalProperties: false },
    { type: "object", patternProperties: { "^[abc]$": true }, additionalProperties: false, minProperties: 3 },
    {
      type: "object",
      patternProperties: { "^[a-c]{1,2}$": { type: "null" } },
      additionalProperties: false,
      minProperties: 9,
    },
    { type: "object", propertyNames: { maxLength: 1 }, minProperties: 5, maxProperties: 6 },
    { properties: { a: true }, additionalProperties: { type: "boolean" }, minProperties: 3 },
    {
      type: "object",
      properties: { p: { type: "null" }, q: { type: "null" } },
      patternProperties: { "^[xy]$": { type: "null" } },
      additionalProperties: false,
      minProperties: 3,
    },
    { type: "array", items: { type: "object", additionalProperties: { type: "object" } }, maxItems: 2 },
  ])("%j", (schema) => {
    generates(schema);
    if (!("propertyNames" in schema)) generates(schema, { freeOrder: true });
  });

  test("a name is legal once, however it is spelled", () => {
    const key = compiled({ type: "object" });
    expect(acceptsText(key, '{"a":1,"b":{"a":2}}')).toBe(true);
    expect(acceptsText(key, '{"a":1,"a":2}')).toBe(false);
    expect(acceptsText(key, '{"a":1,"\\u0061":2}')).toBe(false);
    expect(acceptsText(key, '{"b":{"a":1,"a":2}}')).toBe(false);
    expect(acceptsText(keyOf({ kind: "json_object", json: plainJson }), '{"a":1,"a":2}')).toBe(false);
  });

  test("more names than there are cannot be demanded", () => {
    const schema = {
      type: "object",
      patternProperties: { "^[ab]$": true },
      additionalProperties: false,
      minProperties: 3,
    };
    expect(refusal({ kind: "json_schema", schema: schema as never, json: plainJson })).toMatch(/never be satisfied/);
  });
});

describe("constants that are excluded", () => {
  test.each([
    {
      type: "object",
      properties: { a: { enum: [1, 2] } },
      required: ["a"],
      additionalProperties: false,
      not: { const: { a: 1 } },
    },
    {
      type: "object",
      properties: { a: { type: "integer" } },
      additionalProperties: false,
      not: { enum: [{ a: 1 }, {}] },
    },
    { type: "array", items: { enum: ["x", "y"] }, minItems: 2, maxItems: 2, not: { const: ["x", "x"] } },
    { type: "array", items: { type: "null" }, maxItems: 3, not: { enum: [[], [null]] } },
    { enum: [{ a: 1 }, { a: 2 }, [1]], not: { const: { a: 2 } } },
    { type: ["object", "array"], not: { enum: [{ k: [1] }, [0]] }, maxItems: 1, maxProperties: 1 },
  ])("%j", (schema) => generates(schema));
});

describe("multiples", () => {
  const bounds = { 7: [-50, 50], 900: [0, 90_000], 3600: [-7200, 1e6], 86400: [1, 1e9], 12345: [-1e7, 1e7] };
  test.each([3, 900, 1000, 3600, 86_400, 1_000_000, 4096, 12_345, 999_983])("of the integer %i", (multipleOf) => {
    generates({ type: "integer", multipleOf });
    for (const factor of [0, 1, -1, 7, 450]) {
      expect(acceptsText(compiled({ type: "integer", multipleOf }), String(factor * multipleOf))).toBe(true);
    }
    expect(acceptsText(compiled({ type: "integer", multipleOf }), String(multipleOf + 1))).toBe(false);
  });
  test.each(Object.entries(bounds))("of %s within bounds", (divisor, [minimum, maximum]) => {
    generates({ type: "integer", multipleOf: Number(divisor), minimum, maximum });
    generates({ type: "integer", multipleOf: Number(divisor), exclusiveMinimum: minimum });
    generates({ type: "number", multipleOf: Number(divisor), exclusiveMaximum: maximum });
  });
  test("of several integers, and of decimals in lists", () => {
    generates({ type: "integer", allOf: [{ multipleOf: 900 }, { multipleOf: 250 }] });
    expect(acceptsText(compiled({ enum: [19.99, 0.005], multipleOf: 0.01 }), "19.99")).toBe(true);
    expect(acceptsText(compiled({ enum: [19.99, 0.005], multipleOf: 0.01 }), "0.005")).toBe(false);
  });
});

describe("other keywords", () => {
  test.each([
    { type: "array", contains: { type: "string" }, unevaluatedItems: { type: "integer" }, minItems: 3, maxItems: 3 },
    { type: "array", prefixItems: [true], contains: { const: "x" }, unevaluatedItems: false, maxItems: 4 },
    {
      properties: { n: { type: "integer" } },
      required: ["n"],
      not: { properties: { n: { const: 1 } }, required: ["n"] },
    },
  ])("%j", (schema) => generates(schema));

  test("items that match contains are evaluated", () => {
    const schema = { type: "array", contains: { type: "string" }, unevaluatedItems: { type: "integer" } };
    expect(acceptsText(compiled(schema), '["a", 1]')).toBe(true);
    expect(acceptsText(compiled(schema), '["a", null]')).toBe(false);
    const older = { ...schema, $schema: "https://json-schema.org/draft/2019-09/schema" };
    expect(refusal({ kind: "json_schema", schema: older as never, json: plainJson })).toMatch(/never be satisfied/);
  });

  test("drafts 4 to 7 ignore what stands beside a reference, where it would allow nothing", () => {
    const $schema = "http://json-schema.org/draft-07/schema#";
    const definitions = { s: { type: "string", maxLength: 3 } };
    const schema = { $schema, definitions, $ref: "#/definitions/s", type: "integer" };
    expect(acceptsText(compiled(schema), '"abc"')).toBe(true);
    expect(
      acceptsText(
        compiled({ $schema, definitions, type: "array", items: { $ref: "#/definitions/s", maxLength: 1 } }),
        '["ab"]',
      ),
    ).toBe(false);
  });

  test("null is a type of a nullable schema in conditions, too", () => {
    const schema = { not: { type: "object", nullable: true } };
    expect(acceptsText(compiled(schema), "null")).toBe(false);
    expect(acceptsText(compiled(schema), "[]")).toBe(true);
  });

  test("one of two thousand constants", () => {
    const key = compiled({ oneOf: Array.from({ length: 2000 }, (_, i) => ({ const: i % 2 ? `c${i}` : i })) });
    expect(acceptsText(key, '"c1999"')).toBe(true);
    expect(acceptsText(key, "1999")).toBe(false);
  });
});

describe("what random schemas found", () => {
  test.each([
    { pattern: "c", maxLength: 2 },
    { pattern: "[0-9]", minLength: 3, maxLength: 5 },
    { minProperties: 1, maxProperties: 0 },
    { minItems: 1, maxItems: 0 },
    { type: "number", not: { type: "integer" } },
    { type: "array", not: { contains: false, maxContains: 0 } },
    { type: "array", not: { contains: { type: "null" }, minContains: 2, maxContains: 3 }, maxItems: 6 },
    { type: "number", not: { multipleOf: 900 } },
  ])("%j", (schema) => generates(schema));

  test("drafts 4 to 7: what is beside a negated reference does not count", () => {
    const $schema = "http://json-schema.org/draft-07/schema#";
    const definitions = { any: true };
    const schema = { $schema, definitions, not: { type: "object", $ref: "#/definitions/any" } };
    expect(refusal({ kind: "json_schema", schema: schema as never, json: plainJson })).toMatch(/never be satisfied/);
  });

  test("drafts 4 to 7: a listed value must be rejected by a negated reference alone", () => {
    const $schema = "http://json-schema.org/draft-07/schema#";
    const definitions = { low: { exclusiveMaximum: -3 } };
    const not = { $ref: "#/definitions/low", type: "object" };
    const schema = { $schema, definitions, not, oneOf: [{ enum: [null, -4, 5] }] };
    const key = compiled(schema);
    expect(["null", "-4", "5"].filter((text) => acceptsText(key, text))).toEqual(["5"]);
    const conditional = { $schema, definitions, enum: [null, 5], if: { not }, else: false };
    expect(["null", "5"].filter((text) => acceptsText(compiled(conditional), text))).toEqual(["5"]);
  });

  test("a part that is enforced only in part does not make a schema impossible", () => {
    const schema = {
      allOf: [
        { type: "boolean" },
        { oneOf: [{ required: ["a"], type: "object" }, { dependentRequired: { a: ["a"] } }, { type: "integer" }] },
      ],
    };
    expect(refusal({ kind: "json_schema", schema: schema as never, json: plainJson })).toMatch(
      /^only a part of "oneOf", at .* is supported/,
    );
  });
});

test("exactly one of a thousand closed objects without a tag", () => {
  const branch = (i: number): object => ({
    type: "object",
    properties: { [`k${i}`]: { type: "integer" }, note: { type: "string" } },
    required: [`k${i}`],
    additionalProperties: false,
  });
  const key = compiled({ oneOf: Array.from({ length: 1000 }, (_, i) => branch(i)) });
  expect(acceptsText(key, '{"k999":1,"note":"x"}')).toBe(true);
  expect(acceptsText(key, '{"k1000":1}')).toBe(false);
  // A name that one requires and the other allows does not tell them apart.
  const open = { oneOf: [branch(0), { ...branch(0), required: ["note"] }] };
  expect(acceptsText(compiled(open), '{"k0":1}')).toBe(true);
  expect(acceptsText(compiled(open), '{"k0":1,"note":"x"}')).toBe(false);
});

describe("two thousand properties", () => {
  const names = Array.from({ length: 2000 }, (_, i) => `field_${i}`);
  const properties = Object.fromEntries(names.map((name) => [name, { type: "integer" }]));

  test("of which at most ten may be there", () => {
    const key = compiled({ type: "object", properties, maxProperties: 10 });
    const members = (count: number): string =>
      names
        .slice(0, count)
        .map((name) => `"${name}":1`)
        .join();
    expect(acceptsText(key, `{${members(10)}}`)).toBe(true);
    expect(acceptsText(key, `{${members(11)}}`)).toBe(false);
    expect(acceptsText(key, '{"field_7":1,"field_7":1}')).toBe(false);
    expect(acceptsText(key, "{}")).toBe(true);
  });

  test("of which every other one is required", () => {
    const required = names.filter((_, i) => i % 2 === 0);
    const key = compiled({ type: "object", properties, required, additionalProperties: false });
    const text = (list: readonly string[]): string => `{${list.map((name) => `"${name}":1`).join()}}`;
    expect(acceptsText(key, text(required))).toBe(true);
    expect(acceptsText(key, text(names))).toBe(true);
    expect(acceptsText(key, text(required.slice(1)))).toBe(false);
  });
});
