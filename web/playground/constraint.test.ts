import { describe, expect, it } from "vitest";
import { constraintFields, lineAndColumn, localProblem, serverProblem } from "./constraint.ts";
import { placeOfPointer } from "./json-place.ts";

describe("structured output", () => {
  it("becomes fields of a request", () => {
    expect(constraintFields("text", "ignored")).toEqual({});
    expect(constraintFields("regex", "a+")).toEqual({ structured_outputs: { regex: "a+" } });
    expect(constraintFields("choice", "yes\nno\n")).toEqual({ structured_outputs: { choice: ["yes", "no"] } });
    expect(constraintFields("grammar", "root ::= x")).toEqual({ structured_outputs: { grammar: "root ::= x" } });
    expect(constraintFields("json", '{"type":"object"}')).toMatchObject({
      response_format: { type: "json_schema", json_schema: { schema: { type: "object" } } },
    });
  });

  it("has its local mistakes at their place", () => {
    expect(localProblem("json", '{"type":\n  oops}')).toMatchObject({ offset: 11 });
    expect(localProblem("json", '{"a": }')).toMatchObject({ offset: 6 });
    expect(localProblem("json", '{"type"')).toMatchObject({ offset: 7 });
    expect(localProblem("json", "[]")?.message).toContain("JSON object");
    expect(localProblem("json", "")).toBe(null);
    expect(localProblem("choice", "\n")?.message).toContain("one choice per line");
    expect(localProblem("regex", "(")).toBe(null); // the server's dialect decides
  });

  it("has the server's complaints at their place", () => {
    const schema = '{\n  "type": "object",\n  "properties": { "a": { "pattern": "((" } }\n}';
    const place = serverProblem(
      "json",
      schema,
      'the schema keyword "pattern": invalid regex, at position 1, at #/properties/a',
    );
    expect(lineAndColumn(schema, place.offset!)).toEqual({ line: 3, column: 24 });
    expect(serverProblem("regex", "a(b", "invalid regex: unclosed group, at position 1").offset).toBe(1);
    expect(serverProblem("grammar", "start: FOO\nFOO: /a(/", "invalid, at line 2, column 6").offset).toBe(16);
    expect(serverProblem("grammar", "x", "too large").offset).toBe(null);
  });

  it("follows pointers through objects and arrays, with escaped names", () => {
    const text = '{"a/b": [1, {"x": "]}"}, true], "c~": {"": 2}}';
    expect(text.slice(placeOfPointer(text, "#/a~1b/1/x"))).toMatch(/^"]}"/);
    expect(text.slice(placeOfPointer(text, "#/a~1b/2"))).toMatch(/^true/);
    expect(text.slice(placeOfPointer(text, "#/c~0"))).toMatch(/^\{"":/);
    expect(placeOfPointer(text, "#")).toBe(0);
    expect(text.slice(placeOfPointer(text, "#/a~1b/9"))).toMatch(/^\[1/);
  });
});
