import { test } from "vitest";
import { judge, judgeTexts } from "../../../../test/grammar/judge.ts";

test.each([
  [{ not: { propertyNames: { not: { const: "0" } } } }, [{ 0: 1 }, { 0: 1, a: 2 }], [{}, { a: 1 }]],
  [{ not: { propertyNames: { pattern: "^a" } } }, [{ b: 1 }], [{}, { a: 1 }, { ab: 1, abc: 2 }]],
  [{ not: { patternProperties: { b: false } } }, [{ ab: 1 }, { b: [] }], [{}, { a: 1 }]],
  [
    { type: "object", not: { patternProperties: { "^x": { type: "string" } } } },
    [{ x: 1 }, { x1: null, a: "" }],
    [{}, { x: "a" }, { a: 1 }],
  ],
  [
    { properties: { x: { type: ["integer", "string"] } }, not: { patternProperties: { "^x": { type: "string" } } } },
    [{ x: 1 }, { x: "a", xy: 1 }],
    [{ x: "a" }, { x: 1.5 }],
  ],
  [{ not: { properties: { a: {} }, additionalProperties: false } }, [{ b: 1 }, { b: 1, a: 2 }], [{}, { a: 1 }]],
  [
    { allOf: [{ not: { patternProperties: { a: false } } }, { not: { patternProperties: { b: false } } }] },
    [{ a: 1, b: 1 }],
    [{ a: 1 }, { b: 1 }, {}],
  ],
  [
    {
      allOf: [
        { not: { patternProperties: { "^a": { type: "null" } } } },
        { not: { patternProperties: { "^b": { type: "null" } } } },
      ],
      additionalProperties: { type: ["null", "integer"] },
    },
    [{ a: 1, b: 1 }],
    [{ a: 1, b: null }, { a: 1 }, { a: 1, b: "" }],
  ],
  [{ type: "integer", not: { multipleOf: 3 } }, [1, 2, 4, -5, 1000], [0, 3, -6, 999]],
  [{ type: "number", not: { multipleOf: 0.5 } }, [0.25, 1.3, -7.125], [0, 1, 2.5]],
  [{ type: "integer", oneOf: [{ multipleOf: 3 }, { multipleOf: 5 }] }, [3, 5, -9, 100], [15, 0, 1]],
  [{ type: "number", multipleOf: 2, not: { multipleOf: 4 }, minimum: 0, maximum: 10 }, [2, 6, 10], [0, 4, 3, 14]],
])("%j", (schema, valid, invalid) => {
  judge(schema, { valid, invalid });
});

test("a wrong format is a string that nobody takes for it", () => {
  judgeTexts(
    { oneOf: [{ format: "ipv4" }, { format: "ipv6" }, { format: "hostname" }], type: "string" },
    ['"example.org"', '"::1"'],
    ['"1.2.3.4"', '"a b"'],
  );
  judgeTexts({ type: "string", not: { format: "date" } }, ['"today"', '""'], ['"2024-01-31"']);
});
