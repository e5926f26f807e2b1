// Every assertion in a schema is either enforced or refused by name. A keyword that no draft defines is ignored.

import { describe, expect, test } from "vitest";
import { compileConstraint } from "../../src/grammar/compile.ts";
import type { JsonOptions } from "../../src/grammar/constraint.ts";
import { acceptsText } from "./accepts.ts";
import { keyOf, plainJson, refusal } from "./walk.ts";

const message = (schema: unknown) => refusal({ kind: "json_schema", schema: schema as never, json: plainJson });

test.each([
  ["disallow", "string"],
  ["divisibleBy", 2],
  ["extends", {}],
])("%s of draft 3 is refused with its path", (keyword, value) => {
  const $schema = "http://json-schema.org/draft-03/schema#";
  const schema = { $schema, type: "object", properties: { inner: { [keyword]: value } } };
  expect(message(schema)).toBe(`the schema keyword "${keyword}" is not supported, at #/properties/inner`);
  expect(message({ ...schema, $schema: "https://json-schema.org/draft/2020-12/schema" })).toBe("accepted");
});

test("a keyword that no draft defines has no effect and is reported", () => {
  const schema = { type: "integer", strict: true, markdownDescription: "x", additonalProperties: false, "x-order": 1 };
  const ignored: string[] = [];
  const shape = { kind: "json_schema", schema, json: plainJson } as const;
  compileConstraint({ shape, reasoning: null }, (keywords) => ignored.push(...keywords));
  expect(ignored).toEqual(["strict", "markdownDescription", "additonalProperties"]);
  expect(keyOf(shape)).toBe(keyOf({ ...shape, schema: { type: "integer" } }));
});

test("annotations have no effect", () => {
  const annotated = {
    $schema: "x",
    $id: "y",
    $comment: "z",
    title: "t",
    description: "d",
    default: 1,
    examples: [1],
    deprecated: true,
    readOnly: true,
    writeOnly: false,
    contentMediaType: "text/plain",
    "x-order": 3,
    type: "integer",
  };
  expect(keyOf({ kind: "json_schema", schema: annotated, json: plainJson })).toBe(
    keyOf({ kind: "json_schema", schema: { type: "integer" }, json: plainJson }),
  );
});

test.each([
  [{ type: "strin" }, /"type" must be a JSON type name/],
  [{ items: { enum: [1, 2] }, type: "array", uniqueItems: true, minItems: 3 }, /can never be satisfied/],
  [
    { type: "string", pattern: "a(?<=x)" },
    /"pattern": invalid regex: lookbehind is not supported, at position 1, at #/,
  ],
  [{ const: 2 ** 60 }, /integers beyond 2\^53 in enum and const lose digits/],
  [{ enum: [1, { id: [-(2 ** 60)] }] }, /integers beyond 2\^53/],
  [{ $ref: "https://example.com/schema" }, /may only point into the same schema/],
  [{ $ref: "#/$defs/nope" }, /points to nothing/],
  [{ $ref: "#" }, /can never be satisfied/],
  [{ properties: { a: { minimum: "3" } } }, /"minimum" must be a number, at #\/properties\/a/],
  [{ enum: [] }, /"enum" must be a non-empty array/],
  [{ enum: ["a"], type: "integer" }, /no listed value fits/],
  [{ enum: [-1, 256], type: "integer", format: "uint8" }, /no listed value fits/],
  [{ allOf: [{ type: "string" }, { type: "integer" }] }, /no type in common/],
  [{ allOf: [{ enum: [1, 3] }, { enum: [2] }] }, /list no value in common, at #/],
  [{ allOf: [{ const: 1 }, { const: 2 }] }, /demand two different constants, at #/],
  [{ type: "string", pattern: ["a", "b"] }, /"pattern" must be a string, at #/],
  [{ type: "string", allOf: [{ format: "date" }, { format: "time" }] }, /no string fits the schema, at #/],
  [{ type: "integer", minimum: 5, maximum: 4 }, /no number lies between/],
  [{ type: "string", minLength: 5, maxLength: 4 }, /"maxLength" is less than "minLength"/],
  [{ type: "string", minLength: 100_000 }, /"minLength" is supported up to/],
  [
    { type: "object", required: ["a"], additionalProperties: false },
    /required property "a" is neither declared nor allowed/,
  ],
  [{ type: "object", properties: { a: false }, required: ["a"] }, /can never be satisfied/],
  [{ patternProperties: { "(": {} } }, /"pattern": invalid regex: .*, at #\/patternProperties/],
  [{ patternProperties: { a: 1 } }, /"patternProperties" must be an object of schemas/],
  [
    { type: "object", patternProperties: { a: {} }, required: ["b"], additionalProperties: false },
    /required property "b" is neither declared nor allowed/,
  ],
  [{ propertyNames: "a" }, /"propertyNames" must be a schema/],
  [{ not: {} }, /can never be satisfied/],
  [{ not: { format: "regex" } }, /"not" is not supported around "format", at #\/not/],
  [{ $dynamicRef: "https://example.com/other" }, /"\$dynamicRef" may only point into the same schema/],
  [{ type: "object", required: ["a"], propertyNames: { enum: ["b"] } }, /can never be satisfied/],
  ["text", /a JSON schema must be an object/],
  [[1], /a JSON schema must be an object/],
])("%j", (schema, expected) => {
  expect(message(schema)).toMatch(expected);
});

test("compiles a list of a hundred thousand values", () => {
  const values = Array.from({ length: 100_000 }, (_, index) => `v${index}`);
  const key = keyOf({ kind: "json_schema", schema: { type: "string", enum: values }, json: plainJson });
  expect(acceptsText(key, '"v99999"')).toBe(true);
  expect(acceptsText(key, '"v100000"')).toBe(false);
});

test("a choice must not contain half of a surrogate pair", () => {
  expect(refusal({ kind: "choice", choices: ["a", "b\ud83d"] })).toMatch(/half of a surrogate pair/);
  expect(refusal({ kind: "choice", choices: ["\u{1f600}"] })).toBe("accepted");
  const tag = { type: "structural_tag", format: { type: "const_string", value: "a\udc00" } };
  expect(refusal({ kind: "structural_tag", tag, json: plainJson })).toMatch(/half of a surrogate pair/);
});

describe("options", () => {
  const open = { type: "object" };
  const accepts = (schema: unknown, json: Partial<JsonOptions>, text: string) =>
    acceptsText(keyOf({ kind: "json_schema", schema: schema as never, json: { ...plainJson, ...json } }), text);

  test("disable_additional_properties closes objects that declare nothing", () => {
    expect(accepts(open, {}, '{"a":1}')).toBe(true);
    expect(accepts(open, { closedObjects: true }, '{"a":1}')).toBe(false);
    expect(accepts(open, { closedObjects: true }, "{}")).toBe(true);
    expect(accepts({ ...open, additionalProperties: true }, { closedObjects: true }, '{"a":1}')).toBe(true);
  });

  test("whitespace: the usual layouts by default, none when compact, the given pattern otherwise", () => {
    const list = { type: "object", properties: { a: { type: "array", items: { type: "integer" } } }, required: ["a"] };
    for (const text of ['{"a":[1,2]}', '{"a": [1, 2]}', '{\n  "a": [\n    1,\n    2\n  ]\n}', '{\n\t"a": []\n}']) {
      expect(accepts(list, {}, text), text).toBe(true);
    }
    expect(accepts(list, {}, '{  "a":[1]}')).toBe(false);
    expect(accepts(list, {}, `{\n${" ".repeat(100)}"a":[1]}`)).toBe(false);
    expect(accepts(list, { compact: true }, '{"a": [1]}')).toBe(false);
    expect(accepts(list, { whitespacePattern: " {0,3}" }, '{   "a"  : [ 1 ,2]}')).toBe(true);
    expect(accepts(list, { whitespacePattern: " {0,3}" }, '{\n"a":[1]}')).toBe(false);
    const message = refusal({ kind: "json_object", json: { ...plainJson, whitespacePattern: "x*" } });
    expect(message).toMatch(/whitespace_pattern may only match/);
  });

  test("json_object allows any object and nothing else", () => {
    const key = keyOf({ kind: "json_object", json: plainJson });
    for (const text of ["{}", '{"a": [1, {"b": null}], "c": "\\u00e9\\ud83d\\ude00"}'])
      expect(acceptsText(key, text)).toBe(true);
    for (const text of ["[]", "1", '{"a"}', '{"a": "\\ud800"}', '{"a": 01}', '{"a":\n\n1}'])
      expect(acceptsText(key, text), text).toBe(false);
  });
});

test.each([
  ["date", ["2024-02-29", "1999-12-31"], ["2023-02-29", "2024-13-01", "2024-04-31"]],
  ["time", ["23:59:59Z", "01:02:03.5+01:30"], ["24:00:00Z", "1:2:3Z"]],
  ["date-time", ["2024-02-29T23:59:59Z"], ["2024-02-29 23:59:59Z"]],
  ["uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567"]],
  ["uuid4", ["123e4567-e89b-42d3-a456-426614174000"], ["123e4567-e89b-12d3-a456-426614174000"]],
  ["email", ["a.b+c@example.org"], ["a@b", "@x.yz"]],
  ["ipv4", ["192.168.0.255"], ["192.168.0.256", "01.2.3.4"]],
  ["ipv6", ["::1", "fe80:0:0:0:0:0:0:1"], [":::1"]],
  ["hostname", ["a-b.example.org"], ["-a.org"]],
  ["uri", ["https://example.org/a?b=c#d", "http://10.0.0.1:80/", "http://api:80"], ["example.org", "http://a.4/"]],
  ["uuid7", ["019e4567-e89b-72d3-a456-426614174000"], ["123e4567-e89b-12d3-a456-426614174000"]],
  ["ipvanyaddress", ["::1", "10.0.0.1"], ["10.0.0"]],
  ["ipv4network", ["10.1.0.0/16", "10.1.2.3/32"], ["10.1.2.3/16"]],
  ["ipv6network", ["fe80::/64", "::1/128"], ["::1/64"]],
  ["cidrv4", ["10.1.2.3/16"], ["10.1.2.3/33", "10.1.2.3"]],
  ["cidrv6", ["fe80::1/128"], ["fe80::1/129"]],
  ["mac", ["00:1b:44:11:3a:b7"], ["00:1b:44:11:3a"]],
  ["base64", ["", "aGk=", "aGV5"], ["aGk", "a"]],
  ["base64url", ["", "a-_V"], ["aGk", "aGk="]],
  ["e164", ["+4930123456"], ["030123456"]],
  ["ulid", ["01ARZ3NDEKTSV4RRFFQ69G5FAV"], ["81ARZ3NDEKTSV4RRFFQ69G5FAV"]],
  ["nanoid", ["V1StGXR8_Z5jdHi6B-myT"], ["V1StGXR8"]],
  ["password", ["", "any text"], []],
  ["duration", ["P3W", "P1Y2M3D", "PT5H"], ["P", "PT"]],
])("format %s", (format, yes, no) => {
  const key = keyOf({ kind: "json_schema", schema: { type: "string", format }, json: plainJson });
  for (const text of yes) expect(acceptsText(key, JSON.stringify(text)), text).toBe(true);
  for (const text of no) expect(acceptsText(key, JSON.stringify(text)), text).toBe(false);
});

test.each([
  ["int8", ["-128", "127"], ["128", "-129"]],
  ["int32", ["-2147483648", "2147483647"], ["2147483648", "-2147483649"]],
  ["uint8", ["0", "255"], ["-1", "256"]],
  ["uint64", ["0", "123456789012345678"], ["-1"]],
  ["int64", ["-123456789012345678"], []],
])("format %s of an integer", (format, yes, no) => {
  const key = keyOf({ kind: "json_schema", schema: { type: "integer", format }, json: plainJson });
  for (const text of yes) expect(acceptsText(key, text), text).toBe(true);
  for (const text of no) expect(acceptsText(key, text), text).toBe(false);
  const narrow = { type: "integer", format, minimum: 3, exclusiveMaximum: 5 };
  const within = keyOf({ kind: "json_schema", schema: narrow, json: plainJson });
  expect(["2", "3", "4", "5"].filter((text) => acceptsText(within, text))).toEqual(["3", "4"]);
});
