import { expect, test } from "vitest";
import { judge } from "../../../../test/grammar/judge.ts";
import { plainJson, refusal } from "../../../../test/grammar/walk.ts";

test("items after the prefix may be anything", () => {
  judge({ type: "array", prefixItems: [{ type: "integer" }] }, { valid: [[1], [1, "x", null], []], invalid: [["x"]] });
});

test("both schemas of an allOf apply to every position", () => {
  const schema = {
    type: "array",
    allOf: [
      { prefixItems: [{ type: "integer" }], items: { type: "string" } },
      { items: { type: ["integer", "string"], maxLength: 2 } },
    ],
  };
  judge(schema, { valid: [[1, "ab"], []], invalid: [["a"], [1, 2], [1, "abc"]] });
});

test.each([
  [{ type: "array", contains: { type: "null" } }, [[null], [1, null, 2]], [[], [1]]],
  [
    { type: "array", contains: { type: "null" }, minContains: 2, maxContains: 2 },
    [
      [null, null],
      [null, 1, null],
    ],
    [[null], [null, null, null]],
  ],
  [{ type: "array", contains: { type: "null" }, minContains: 0, maxContains: 1 }, [[], [1, null]], [[null, null]]],
  [
    { type: "array", allOf: [{ contains: { const: 1 } }, { contains: { const: 2 } }], maxItems: 3 },
    [
      [2, 1],
      [1, 3, 2],
    ],
    [
      [1, 1],
      [1, 3, 3, 2],
    ],
  ],
])("%j", (schema, valid, invalid) => {
  judge(schema, { valid, invalid });
});

test("an array that no value satisfies is refused with its path", () => {
  const schema = { type: "array", contains: false };
  expect(refusal({ kind: "json_schema", schema, json: plainJson })).toMatch(
    /no array contains what the schema demands, at #/,
  );
});
