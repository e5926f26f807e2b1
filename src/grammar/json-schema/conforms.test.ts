import { expect, test } from "vitest";
import { withinEffort } from "../compile-effort.ts";
import { Validator } from "./conforms.ts";
import { SchemaDocument } from "./document.ts";
import type { SchemaObject } from "./keywords.ts";

const $schema = "http://json-schema.org/draft-07/schema#";

/** `inner` inside so many alternatives and conditions. */
function nested(depth: number, inner: SchemaObject): SchemaObject {
  if (depth === 0) return inner;
  const deeper = nested(depth - 1, inner);
  return depth % 2 === 0 ? { oneOf: [deeper, { type: "null" }] } : { if: deeper, else: false };
}

test("drafts 4 to 7: depth costs nothing extra where no reference has neighbours", () => {
  const schema = { $schema, ...nested(40, { type: "integer" }) };
  const validator = new Validator(new SchemaDocument(schema));
  const valid = (value: number | string) => withinEffort(() => validator.conforms(value, schema, "#"));
  expect([valid(5), valid("a")]).toEqual([true, false]);
});

test("drafts 4 to 7: neighbours of a reference count, and what is denied is denied without them, too", () => {
  const definitions = { low: { maximum: 0 } };
  const low = { $ref: "#/definitions/low", multipleOf: 2 };
  const schema = { $schema, definitions, ...nested(6, low) };
  const denied = { $schema, definitions, not: schema };
  const judge = (one: SchemaObject, value: number) => new Validator(new SchemaDocument(one)).conforms(value, one, "#");
  expect([-2, -1, 1].map((value) => judge(schema, value))).toEqual([true, false, false]);
  expect([-2, -1, 1].map((value) => judge(denied, value))).toEqual([false, false, true]);
});
