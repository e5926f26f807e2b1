import { expect, test } from "vitest";
import { judge, judgeTexts } from "../../../../test/grammar/judge.ts";
import { refusal } from "../../../../test/grammar/walk.ts";

test.each([
  [{ type: "number", minimum: 0 }, ["19.99", "0.001", "0", "123456.789", "0.12345678901234"], ["-0.1", "-1"]],
  [{ type: "number", exclusiveMinimum: 0 }, ["0.001", "0.1234", "5e0".replace("e0", "")], ["0", "0.0", "-3"]],
  [{ type: "number", maximum: 100 }, ["-3.25", "99.999", "100", "100.0"], ["100.01", "101"]],
  [{ type: "number", minimum: -2.5, exclusiveMaximum: 7.25 }, ["-2.5", "7.2499", "0.333"], ["-2.51", "7.25"]],
  [{ type: "number", maximum: 1.7976931348623157e308 }, ["12.5", "-12.5"], ["x"]],
])("a bound on one side allows all decimals beyond it: %j", (schema, valid, invalid) => {
  judgeTexts(schema, valid, invalid);
});

test("an integer may end in .0, except in draft 4", () => {
  judgeTexts({ type: "integer" }, ["1", "1.0", "-7.0"], ["1.5", "1.", "1.00"]);
  judgeTexts({ type: "integer", minimum: 3 }, ["3.0"], ["2.0"]);
  judgeTexts({ $schema: "http://json-schema.org/draft-04/schema#", type: "integer" }, ["1"], ["1.0"]);
});

test("the exclusive bounds of draft 4 are booleans", () => {
  judgeTexts({ type: "integer", minimum: 3, exclusiveMinimum: true, maximum: 9 }, ["4", "9"], ["3", "10"]);
});

test.each([
  [0.01, ["19.99", "0.5", "7", "-3.10", "2.000"], ["0.001", "19.999"]],
  [0.5, ["1.5", "2", "-0.5"], ["0.25", "1.1"]],
  [2.5, ["5", "7.5"], ["6", "5.5"]],
  [12, ["24", "-36"], ["25", "1.2"]],
])("multiples of %d", (multipleOf, valid, invalid) => {
  judgeTexts({ type: "number", multipleOf }, valid, invalid);
});

test("several multipleOf and bounds apply together", () => {
  const schema = { allOf: [{ multipleOf: 3 }, { multipleOf: 2 }], type: "integer", minimum: 7 };
  judge(schema, { valid: [12, 18], invalid: [6, 9, 8] });
});

test("excluded numbers are removed from the range", () => {
  judge({ type: "integer", minimum: 0, maximum: 12, not: { enum: [0, 7] } }, { valid: [1, 12], invalid: [0, 7, 13] });
  judge({ type: "number", not: { const: 0.5 } }, { valid: [0.51, 0, -2], invalid: [0.5] });
});

test("an empty range is refused with its path", () => {
  const schema = { type: "number", minimum: 5, maximum: 4 };
  expect(
    refusal({ kind: "json_schema", schema, json: { compact: false, closedObjects: false, whitespacePattern: null } }),
  ).toMatch(/no number lies between the given minimum and maximum, at #/);
});
