// Schemas like those that people send: realistic examples, and one schema per supported keyword.

export const schemas: Record<string, unknown> = {
  anything: {},
  "a person": {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Person",
    type: "object",
    properties: {
      name: { type: "string", minLength: 1, maxLength: 20 },
      age: { type: "integer", minimum: 0, maximum: 130 },
      email: { type: "string", format: "email" },
      tags: { type: "array", items: { type: "string", maxLength: 5 }, maxItems: 3 },
    },
    required: ["name", "age"],
    additionalProperties: false,
  },
  "references, recursive": {
    $defs: {
      node: {
        type: "object",
        properties: { value: { type: "integer" }, children: { type: "array", items: { $ref: "#/$defs/node" } } },
        required: ["value", "children"],
      },
    },
    $ref: "#/$defs/node",
  },
  "linked list": {
    type: "object",
    properties: { head: { type: "boolean" }, tail: { anyOf: [{ type: "null" }, { $ref: "#" }] } },
    required: ["head", "tail"],
  },
  "all optional": { type: "object", properties: { a: { type: "null" }, b: { type: "boolean" }, c: { const: 5 } } },
  "optional then required": {
    type: "object",
    properties: {
      a: { type: "null" },
      b: { type: "boolean" },
      c: { const: "x" },
      d: { enum: [1, "two", null, [3], { e: 4 }] },
    },
    required: ["c"],
  },
  "counted properties": {
    type: "object",
    properties: { a: { type: "null" }, b: { type: "null" }, c: { type: "null" }, d: { type: "null" } },
    minProperties: 2,
    maxProperties: 3,
    additionalProperties: false,
  },
  "counted open properties": {
    type: "object",
    properties: { a: { type: "integer" } },
    additionalProperties: { type: "boolean" },
    minProperties: 2,
    maxProperties: 4,
  },
  "addresses with lengths": {
    type: "object",
    properties: {
      url: { type: "string", format: "uri", minLength: 1, maxLength: 2083 },
      link: { type: "string", format: "uri", maxLength: 255 },
      short: { type: "string", format: "uri", minLength: 5, maxLength: 60 },
      reference: { type: "string", format: "uri-reference", maxLength: 500 },
      mail: { type: "string", format: "email", maxLength: 100 },
    },
    required: ["url", "link", "short", "reference", "mail"],
  },
  "checks as zod writes them": {
    type: "object",
    properties: {
      a: { type: "string", format: "starts_with", pattern: "^ab.*" },
      b: { type: "string", format: "lowercase", pattern: "^[^A-Z]*$", maxLength: 5 },
    },
    required: ["a", "b"],
  },
  "several checks as zod writes them": {
    type: "object",
    properties: {
      a: { type: "string", format: "ends_with", minLength: 3, allOf: [{ pattern: "^a.*" }, { pattern: ".*b$" }] },
      host: {
        type: "string",
        format: "hostname",
        pattern:
          "^(?=.{1,253}\\.?$)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[-0-9a-zA-Z]{0,61}[0-9a-zA-Z])?)*\\.?$",
      },
      digest: { type: "string", format: "md5_base64", pattern: "^[A-Za-z0-9+/]{22}==$" },
      id: { type: "string", format: "cuid2", pattern: "^[0-9a-z]+$" },
    },
    required: ["a", "host", "digest", "id"],
  },
  "a pattern on both sides and one among alternatives": {
    type: "string",
    pattern: "^[ab]",
    anyOf: [{ pattern: "c$" }, { allOf: [{ pattern: "d$" }, { pattern: "^.{3,5}$" }] }],
  },
  "patterns with lookahead": {
    type: "object",
    properties: {
      price: { type: "string", pattern: "^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$", maxLength: 8 },
      mood: {
        type: "string",
        format: "emoji",
        pattern:
          "^(?=[\\s\\S]*[\\p{Extended_Pictographic}\\p{Regional_Indicator}\\u20E3])[\\p{Extended_Pictographic}\\p{Emoji_Component}]+$",
      },
      code: { type: "string", pattern: "^(?!.*--)[a-z-]{2,6}(?!\\d)" },
    },
    required: ["price", "mood", "code"],
  },
  "names by pattern, as pydantic writes them": {
    type: "object",
    patternProperties: { "^[a-z]{1,3}$": { type: "integer", minimum: 0, maximum: 9 } },
    maxProperties: 3,
  },
  "patterns that meet": {
    type: "object",
    properties: { ab: { type: "integer" }, z: { type: "null" } },
    required: ["ab", "b1"],
    patternProperties: { "^a": { maximum: 9 }, "b$|1": { type: "integer", minimum: 5, maximum: 99 } },
    additionalProperties: { type: "boolean" },
    maxProperties: 6,
  },
  "patterns and a list of names": {
    propertyNames: { enum: ["x_a", "x_b", "y"] },
    patternProperties: { "^x_": { type: "null" } },
    minProperties: 1,
  },
  "a listed object under patterns": {
    enum: [{ a: 1 }, { a: "x" }, { b: "x" }],
    patternProperties: { "^a": { type: "integer" } },
  },
  "sets, as pydantic writes them": {
    $defs: { Tag: { enum: ["x", "y", { z: [1] }, "w"] } },
    type: "object",
    properties: {
      tags: { type: "array", items: { $ref: "#/$defs/Tag" }, uniqueItems: true },
      flags: { type: "array", items: { type: "boolean" }, uniqueItems: true, minItems: 1 },
      pair: { type: "array", items: { enum: [1, 1.0, 2, 3, "4"], type: "integer" }, uniqueItems: true, maxItems: 2 },
      one: { type: "array", items: { type: "string" }, uniqueItems: true, maxItems: 1 },
      none: { type: "array", items: false, uniqueItems: true },
      listed: {
        enum: [
          [1, 1],
          [1, 2],
        ],
        uniqueItems: true,
      },
      both: { allOf: [{ items: { enum: [1, 2, 3] } }, { type: "array", uniqueItems: true, minItems: 2 }] },
    },
    required: ["tags", "flags", "pair", "one", "none", "listed", "both"],
  },
  "alternatives that contradict what stands beside them": {
    type: "object",
    properties: {
      // Two objects with nullable strings, written as zod writes an intersection.
      a: {
        allOf: [
          { anyOf: [{ type: "string" }, { type: "null" }] },
          { anyOf: [{ type: "string", maxLength: 3 }, { type: "null" }] },
        ],
      },
      b: { enum: [1, 2, "x"], anyOf: [{ minimum: 2, type: "integer" }, { type: "boolean" }] },
      c: { type: "string", oneOf: [{ type: "integer" }, { maxLength: 2, type: "string" }] },
    },
    required: ["a", "b", "c"],
  },
  "a record as zod writes it": {
    type: "object",
    propertyNames: { type: "string" },
    additionalProperties: { type: "number" },
    maxProperties: 3,
  },
  "names by a referenced list, as pydantic writes them": {
    $defs: { Colour: { enum: ["red", "green", "blue"], type: "string", title: "Colour" } },
    type: "object",
    propertyNames: { $ref: "#/$defs/Colour" },
    additionalProperties: { type: "integer", minimum: 0, maximum: 9 },
  },
  "every listed name": {
    type: "object",
    propertyNames: { type: "string", enum: ["a", "b"] },
    additionalProperties: { type: "boolean" },
    required: ["b", "a"],
  },
  "names by pattern and length": {
    type: "object",
    properties: { id: { type: "integer" }, Id: { type: "integer" } },
    propertyNames: { pattern: "^[a-z]+$", maxLength: 4 },
    additionalProperties: { type: "null" },
    maxProperties: 3,
  },
  "names from two sides": {
    allOf: [
      { type: "object", propertyNames: { pattern: "^a" }, additionalProperties: { type: "null" }, maxProperties: 2 },
      { propertyNames: { enum: ["ab", "b", "ac"] } },
    ],
  },
  "additional properties by schema": {
    type: "object",
    properties: { id: { type: "integer" } },
    required: ["id"],
    additionalProperties: { type: "string", maxLength: 3 },
  },
  "additional properties, nothing declared": { type: "object", additionalProperties: { enum: ["x", "y"] } },
  "required without declaration": { type: "object", properties: { a: { type: "null" } }, required: ["b"] },
  "string lengths": { type: "array", items: { type: "string", minLength: 2, maxLength: 4 }, minItems: 1, maxItems: 4 },
  pattern: { type: "string", pattern: "^[A-Z]{2}-\\d{3}$" },
  "pattern without anchors": { type: "string", pattern: 'b"\\\\?c', maxLength: 12 },
  "pattern and length": { type: "string", pattern: "^(ab|c)+$", minLength: 3, maxLength: 5 },
  uuid: { type: "string", format: "uuid" },
  "integer bounds": {
    type: "array",
    items: { type: "integer", minimum: -37, exclusiveMaximum: 1205 },
    minItems: 3,
    maxItems: 3,
  },
  "integer lower bound": { type: "array", items: { type: "integer", exclusiveMinimum: 995 }, minItems: 3, maxItems: 3 },
  "number bounds": {
    type: "array",
    items: { type: "number", exclusiveMinimum: -0.25, maximum: 3.14 },
    minItems: 4,
    maxItems: 4,
  },
  multiples: {
    type: "array",
    items: { type: "integer", multipleOf: 7, minimum: -50, maximum: 500 },
    minItems: 3,
    maxItems: 3,
  },
  tuple: {
    type: "array",
    prefixItems: [{ type: "string", maxLength: 2 }, { type: "integer" }],
    items: { type: "boolean" },
    minItems: 1,
    maxItems: 5,
  },
  "closed tuple": { type: "array", prefixItems: [{ type: "null" }, { type: "boolean" }], items: false },
  "type list": { type: ["string", "null", "integer"], maxLength: 3 },
  "one of by const": {
    oneOf: [
      {
        type: "object",
        properties: { kind: { const: "circle" }, radius: { type: "number", minimum: 0 } },
        required: ["kind", "radius"],
      },
      {
        type: "object",
        properties: { kind: { const: "square" }, side: { type: "number", minimum: 0 } },
        required: ["kind", "side"],
      },
    ],
  },
  "one of by type": { oneOf: [{ type: "string", maxLength: 4 }, { type: "integer" }, { type: "null" }] },
  "one of by required": {
    type: "object",
    oneOf: [
      { properties: { a: { type: "integer" } }, required: ["a"] },
      { properties: { b: { type: "integer" } }, required: ["b"] },
    ],
  },
  "all of": {
    allOf: [
      { type: "object", properties: { a: { type: "integer", minimum: 3 } }, required: ["a"] },
      { properties: { a: { maximum: 9 }, b: { type: "string", maxLength: 3 } }, required: ["b"] },
    ],
  },
  "any of beside properties": {
    type: "object",
    properties: { x: { type: "integer" }, y: { type: "integer" } },
    anyOf: [{ required: ["x"] }, { required: ["y"] }],
  },
  "reference with siblings": {
    $defs: { s: { type: "string" } },
    type: "array",
    items: { $ref: "#/$defs/s", maxLength: 2 },
    maxItems: 3,
  },
  "enum narrowed by type": { enum: [1, 2.5, "a", null, true], type: ["integer", "string"] },
  "keys that need escapes": {
    type: "object",
    properties: { 'a"b\\c\n': { type: "null" }, "\u{1f600}": { const: "é\u{1f600}" } },
    required: ['a"b\\c\n', "\u{1f600}"],
  },
  "nested any": {
    type: "object",
    properties: { meta: {}, list: { type: "array" }, obj: { type: "object" } },
    required: ["meta", "list", "obj"],
  },
  nullable: { type: "object", properties: { v: { type: ["integer", "null"] } }, required: ["v"] },
};
