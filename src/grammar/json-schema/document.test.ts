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

test.each([
  [{ $ref: "https://example.com/elsewhere" }, /"\$ref" may only point into the same schema/],
  [{ $ref: "#nowhere" }, /"\$ref" "#nowhere" points to nothing, at #/],
  [{ properties: { a: { $id: "x", $ref: "y" } } }, /"\$ref" beside "\$id" means different things/],
])("%j is refused", (schema, reason) => {
  expect(refusal({ kind: "json_schema", schema, json: plainJson })).toMatch(reason);
});
