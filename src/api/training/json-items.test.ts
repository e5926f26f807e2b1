import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type JsonItem, JsonItems, JsonSyntaxError } from "./json-items.ts";

function read(text: string | Uint8Array, sizes: number[] = [Number.MAX_SAFE_INTEGER]): JsonItem[] {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  const reader = new JsonItems(["groups"]);
  const items: JsonItem[] = [];
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const size = sizes[n % sizes.length]!;
    items.push(...reader.push(bytes.subarray(at, at + size)));
    at += size;
  }
  reader.finish();
  return items;
}
/** The object that the items say was read. */
function assembled(items: JsonItem[]): Record<string, unknown> {
  const object: Record<string, unknown> = Object.create(null);
  for (const item of items) {
    const before = (object[item.key] ?? []) as unknown[];
    object[item.key] = item.type === "field" ? item.value : [...before, item.value];
  }
  return object;
}

describe("JsonItems", () => {
  it("reads any object, in pieces of any size", () => {
    const object = fc.dictionary(
      fc.string().filter((key) => key !== "__proto__"),
      fc.jsonValue(),
      { maxKeys: 5 },
    );
    const groups = fc.array(fc.jsonValue(), { minLength: 1, maxLength: 5 });
    const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 });
    fc.assert(
      fc.property(object, groups, sizes, fc.constantFrom(undefined, 1), (fields, list, pieces, indent) => {
        const whole = { ...fields, groups: list };
        expect(assembled(read(JSON.stringify(whole, null, indent), pieces))).toEqual({
          ...JSON.parse(JSON.stringify(whole)),
        });
      }),
      { numRuns: 300 },
    );
  });

  it("reads empty things and scalars", () => {
    expect(read("{}")).toEqual([]);
    expect(read(' {"groups" : [ ] , "n":-1.5e3,"t":true} \n')).toEqual([
      { type: "field", key: "n", value: -1500 },
      { type: "field", key: "t", value: true },
    ]);
    // as Python writes them; whoever reads the field refuses it with its path
    expect(read('{"groups":[{"reward":NaN,"text":"a NaN"}]}')).toEqual([
      { type: "element", key: "groups", index: 0, value: { reward: Number.POSITIVE_INFINITY, text: "a NaN" } },
    ]);
    expect(read('{"groups":null}')).toEqual([{ type: "field", key: "groups", value: null }]);
  });

  it("finds non-finite numbers beside texts of any length and any escapes", () => {
    const long = "NaN x".repeat(4_000_000);
    const [first] = read(`{"groups":[{"text":"${long}","quoted":"\\\\\\" NaN","low":-Infinity,"reward":NaN}]}`);
    const { text, ...rest } = (first as { value: Record<string, unknown> }).value;
    expect(text === long).toBe(true);
    const [low, reward] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
    expect(rest).toEqual({ quoted: '\\" NaN', low, reward });
    expect(() => read(`{"groups":[{"text":"${long}","reward":NaN,}]}`)).toThrow(/groups\[0\] is not valid JSON/);
  });

  it.each([
    "",
    "[]",
    "{",
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{"a":1 "b":2}',
    '{"groups":[1,]}',
    '{"groups":[1 2]}',
    '{"groups":[,1]}',
    '{"groups":[{]}',
    '{"a":NaNs}',
    '{"a":"\n"}',
    '{"a":1} x',
    "{a:1}",
    '{"a":1',
    '{"groups":[1',
  ])("refuses %j", (text) => {
    expect(() => read(text)).toThrow(JsonSyntaxError);
    expect(() => read(text, [1])).toThrow(JsonSyntaxError);
  });

  it("refuses bytes that are not UTF-8 and nesting without end", () => {
    expect(() => read(Uint8Array.of(0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d))).toThrow(/UTF-8/);
    expect(() => read(`{"a":${"[".repeat(10_000)}`)).toThrow(/nested too deeply/);
    expect(() => read(`{"groups":[${'{"a":'.repeat(10_000)}`)).toThrow(/nested too deeply/);
  });
});
