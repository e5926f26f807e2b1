import { expect, test } from "vitest";
import { judge, judgeTexts } from "../../../test/grammar/judge.ts";
import { plainJson, refusal } from "../../../test/grammar/walk.ts";

test("an anchor inside an enum value is not an anchor", () => {
  const schema = {
    $defs: { s: { $anchor: "x", type: "string" } },
    type: "object",
    properties: { v: { $ref: "#x" }, w: { enum: [{ $anchor: "x", type: "null" }] } },
    required: ["v"],
  };
  judge(schema, { valid: [{ v: "s" }], invalid: [{ v: null }, { v: 1 }] });
});

test("references resolve against the ids of embedded schemas", () => {
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: "https://example.com/root",
    type: "object",
    properties: {
      a: { $ref: "other" },
      b: { $ref: "https://example.com/other#/$defs/n" },
      c: { $ref: "other#named" },
      d: { $ref: "root#/$defs/o/$defs/n" },
    },
    $defs: {
      o: { $id: "other", type: "string", $defs: { n: { type: "null" }, m: { $anchor: "named", $ref: "#/$defs/n" } } },
    },
  };
  judgeTexts(schema, ['{"a":"x","b":null,"c":null,"d":null}'], ['{"a":1}', '{"b":"x"}', '{"c":1}']);
});

test("a dynamic reference with a single anchor acts as a plain one", () => {
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $dynamicAnchor: "node",
    type: "object",
    properties: { v: { type: "integer" }, next: { $dynamicRef: "#node" } },
    required: ["v"],
  };
  judge(schema, { valid: [{ v: 1, next: { v: 2 } }], invalid: [{ v: 1, next: {} }] });
});

test("the meta-schemas of drafts 4, 6 and 7 can be referred to", () => {
  const draft = (number: number, fragment = "") => ({
    $ref: `http://json-schema.org/draft-0${number}/schema#${fragment}`,
  });
  const schema = {
    type: "object",
    properties: { a: draft(7), b: draft(6, "/definitions/nonNegativeInteger"), c: draft(4) },
  };
  judgeTexts(
    schema,
    [
      '{"a":{"required":["x"],"properties":{"x":{"minLength":1,"type":["string","null"]}},"type":"object"},"b":0}',
      '{"a":true,"c":{"maximum":1,"exclusiveMaximum":true,"items":[{"enum":[1]}]}}',
    ],
    [
      '{"a":1}',
      '{"a":{"type":"text"}}',
      '{"a":{"minLength":-1}}',
      '{"b":-1}',
      '{"c":true}',
      '{"c":{"exclusiveMaximum":true}}',
    ],
  );
});

test("an empty allOf demands nothing", () => {
  judgeTexts({ type: "object", properties: { a: { type: "string", allOf: [] } } }, ['{"a":"x"}', "{}"], ['{"a":1}']);
});

test.each([
  [{ $ref: "https://example.com/elsewhere" }, /"\$ref" may only point into the same schema/],
  [{ $ref: "#nowhere" }, /"\$ref" "#nowhere" points to nothing, at #/],
  [{ properties: { a: { $id: "x", $ref: "y" } } }, /"\$ref" beside "\$id" means different things/],
])("%j is refused", (schema, reason) => {
  expect(refusal({ kind: "json_schema", schema, json: plainJson })).toMatch(reason);
});
