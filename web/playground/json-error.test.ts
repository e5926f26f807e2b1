import fc from "fast-check";
import { expect, it } from "vitest";
import { jsonError } from "./json-error.ts";

it("finds the first mistake", () => {
  const cases: [string, number, string][] = [
    ['{"a": }', 6, "a value"],
    ['{"a": 1, }', 9, "a name"],
    ["{'a': 1}", 1, "a name"],
    ['{"a" 1}', 5, "a colon"],
    ['{"a": 1 "b": 2}', 8, "a comma or }"],
    ["[1, 2", 5, "a comma or ]"],
    ["[01]", 1, "a value"],
    ['["a\nb"]', 1, "a string"],
    ["{} x", 3, "the end"],
    ["", 0, "a value"],
  ];
  for (const [text, offset, wanted] of cases) {
    expect([text, jsonError(text)]).toEqual([text, { offset, message: expect.stringContaining(wanted) }]);
  }
});

it("agrees with the parser about what is JSON, and the text before the mistake is not to blame", () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(), fc.constantFrom("}", ",", "x", '"', "", "\n", "["), (json, at, sign) => {
      const place = at % (json.length + 1);
      const text = json.slice(0, place) + sign + json.slice(place + 1);
      const error = jsonError(text);
      let isJson = true;
      try {
        JSON.parse(text);
      } catch {
        isJson = false;
      }
      expect(error === null).toBe(isJson);
      if (error !== null) expect(error.offset).toBeLessThanOrEqual(text.length);
    }),
  );
});
