import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type JsonItem, JsonItems, JsonSizeError, JsonSyntaxError, type Streamed } from "./json-stream.ts";

const WHOLE: Streamed = { groups: null };
const IN_PARTS: Streamed = { groups: { members: null } };

function read(
  text: string | Uint8Array,
  sizes: number[] = [Number.MAX_SAFE_INTEGER],
  streamed: Streamed = WHOLE,
): JsonItem[] {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  const reader = new JsonItems(streamed);
  const items: JsonItem[] = [];
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const size = sizes[n % sizes.length]!;
    items.push(...reader.push(bytes.subarray(at, at + size)));
    at += size;
  }
  reader.finish();
  return items;
}

/** The object that the items say was read: each goes to the place where its path leads. */
function assembled(items: JsonItem[]): unknown {
  const elements = (...path: JsonItem["path"]) =>
    items.filter((item) => item.path.length === path.length + 1 && path.every((step, i) => step === item.path[i]));
  const filled = ({ path, value }: JsonItem): unknown => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    const entries = Object.entries(value).map(([key, field]) => {
      const streamed = elements(...path, key).map(filled);
      return [key, streamed.length > 0 ? streamed : field] as const;
    });
    return Object.fromEntries(entries);
  };
  return filled(items.at(-1)!);
}

describe("JsonItems", () => {
  const fields = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 5 });
  const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 });
  const spaces = fc.constantFrom(undefined, 1);
  const list = fc.array(fc.jsonValue(), { maxLength: 5 });

  it("reads any object, in pieces of any size", () => {
    fc.assert(
      fc.property(fields, list, sizes, spaces, (fields, groups, pieces, indent) => {
        const text = JSON.stringify({ ...fields, groups }, null, indent);
        expect(assembled(read(text, pieces))).toEqual(JSON.parse(text));
      }),
      { numRuns: 300 },
    );
  });

  it("reads elements in parts, each before its parent", () => {
    const group = fc.oneof(
      fc.jsonValue(),
      fc.tuple(fields, fc.oneof(list, fc.jsonValue())).map(([rest, members]) => ({ ...rest, members })),
    );
    fc.assert(
      fc.property(fields, fc.array(group), sizes, spaces, (fields, groups, pieces, indent) => {
        const text = JSON.stringify({ ...fields, groups }, null, indent);
        expect(assembled(read(text, pieces, IN_PARTS))).toEqual(JSON.parse(text));
      }),
      { numRuns: 300 },
    );
    expect(read('{"groups":[{"members":[1,{"members":[2]}],"a":3},[4],{}],"b":5}', [1], IN_PARTS)).toEqual([
      { path: ["groups", 0, "members", 0], value: 1, text: "1" },
      { path: ["groups", 0, "members", 1], value: { members: [2] }, text: '{"members":[2]}' },
      { path: ["groups", 0], value: { members: [], a: 3 }, text: null },
      { path: ["groups", 1], value: [4], text: "[4]" },
      { path: ["groups", 2], value: {}, text: null },
      { path: [], value: { groups: [], b: 5 }, text: null },
    ]);
  });

  it("streams the arrays of an object that is a field", () => {
    const streamed = { batch: { items: null } };
    expect(read('{"a":1,"batch":{"kind":"x","items":[1,{"b":[2]}],"c":{}},"d":[3]}', [1], streamed)).toEqual([
      { path: ["batch", "items", 0], value: 1, text: "1" },
      { path: ["batch", "items", 1], value: { b: [2] }, text: '{"b":[2]}' },
      { path: [], value: { a: 1, batch: { kind: "x", items: [], c: {} }, d: [3] }, text: null },
    ]);
    expect(read('{"batch":{}}', undefined, streamed)).toEqual([{ path: [], value: { batch: {} }, text: null }]);
    expect(() => read('{"batch":{"items":[{]}}', undefined, streamed)).toThrow("batch.items[0] is not valid JSON");
    expect(() => read('{"batch":{"items":[]', undefined, streamed)).toThrow("ends too early");
  });

  it("reads empty containers and scalars", () => {
    expect(read("{}")).toEqual([{ path: [], value: {}, text: null }]);
    expect(read(' {"groups" : [ ] , "n":-1.5e3,"t":true} \n')).toEqual([
      { path: [], value: { groups: [], n: -1500, t: true }, text: null },
    ]);
    // as Python writes them; whoever reads the field refuses it with its path
    expect(read('{"groups":[{"reward":NaN,"text":"a NaN"}]}')[0]).toEqual({
      ...{ path: ["groups", 0], value: { reward: Number.POSITIVE_INFINITY, text: "a NaN" } },
      text: '{"reward":1e999,"text":"a NaN"}',
    });
    expect(read('{"groups":null}')).toEqual([{ path: [], value: { groups: null }, text: null }]);
  });

  it("finds non-finite numbers next to strings with any length and escapes", () => {
    const long = "NaN x".repeat(4_000_000);
    const [first] = read(`{"groups":[{"text":"${long}","quoted":"\\\\\\" NaN","low":-Infinity,"reward":NaN}]}`);
    const { text, ...rest } = first!.value as Record<string, unknown>;
    expect(text === long).toBe(true);
    const [low, reward] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
    expect(rest).toEqual({ quoted: '\\" NaN', low, reward });
    expect(() => read(`{"groups":[{"text":"${long}","reward":NaN,}]}`)).toThrow(/groups\[0\] is not valid JSON/);
  });

  it("refuses too many values before the last one arrives", () => {
    const many = "1,".repeat(2_000_001);
    const refusal = (text: string) => {
      const reader = new JsonItems(IN_PARTS);
      try {
        reader.push(new TextEncoder().encode(text));
        return null;
      } catch (error) {
        if (!(error instanceof JsonSizeError)) throw error;
        return [error.path.join("."), error.message];
      }
    };
    const words = "has more than 2000000 values";
    expect(refusal(`{"a":[${many}`)).toEqual(["a", `a ${words}`]);
    expect(refusal(`{"groups":[{},[${many}`)).toEqual(["groups.1", `groups[1] ${words}`]);
    expect(refusal(`{"groups":[{"members":[0,{"a":[${many}`)).toEqual([
      ...["groups.0.members.1", `groups[0].members[1] ${words}`],
    ]);
    const costly = "has more than 500000 texts, lists and objects";
    for (const item of ["{}", "[]", '"x"']) {
      expect(refusal(`{"a":[${`${item},`.repeat(500_001)}`)).toEqual(["a", `a ${costly}`]);
    }
    const fields = Array.from({ length: 10_001 }, (_, i) => `"k${i}":0`).join(",");
    expect(refusal(`{"a":{${fields}`)).toEqual(["a", "a has an object of more than 10000 fields"]);
    expect(refusal(`{${fields}`)).toEqual(["", "an object has more than 1000 fields"]);
    // what is kept of one object counts together, elements that were handed on do not
    const half = `[${"0,".repeat(1_200_000)}0]`;
    expect(refusal(`{"groups":[{"a":${half},"b":${half}`)).toEqual(["groups.0.b", `groups[0].b ${words}`]);
    expect(refusal(`{"groups":[{"members":[${half},${half}],"a":${half}},{"a":${half}}],"b":${half}`)).toBeNull();
    expect(refusal(`{"a":"${"{},[".repeat(1_000_000)}"`)).toBeNull();
  });

  it("refuses too many elements", () => {
    const many = `{"groups":[${"{},".repeat(1_000_000)}{}]}`;
    expect(() => read(many, undefined, IN_PARTS)).toThrow(/the body has more than 1000000 elements/);
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
    '{"groups":[1],"groups":[2]}',
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

  it.each(['{"a"}', '{"a":1,}', '{"a":1 "b":2}', '{"members":[1,]}', '{"members":[],"members":[]}', '{"members":[1'])(
    "refuses %j as an element",
    (text) => {
      expect(() => read(`{"groups":[${text}]}`, [1], IN_PARTS)).toThrow(JsonSyntaxError);
    },
  );

  it("refuses bytes that are not UTF-8, and unbounded nesting", () => {
    expect(() => read(Uint8Array.of(0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d))).toThrow(/UTF-8/);
    expect(() => read(`{"a":${"[".repeat(10_000)}`)).toThrow(/nested too deeply/);
    expect(() => read(`{"groups":[${'{"a":'.repeat(10_000)}`)).toThrow(/nested too deeply/);
  });
});
