import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ServiceError } from "../../errors/service-error.ts";
import { InnerJson, MAX_DEPTH, MAX_PARTS, MAX_VALUES, parseJsonObject } from "./body.ts";

const parse = (text: string) => parseJsonObject(Buffer.from(text));

function refusal(text: string | Buffer): ServiceError {
  try {
    parseJsonObject(Buffer.from(text as string));
  } catch (error) {
    return error as ServiceError;
  }
  throw new Error("was accepted");
}

describe("parseJsonObject", () => {
  it.each(["", "null", "42", '"x"', "[1]", "{", '{"a":NaN}', '{"a":Infinity}', '{"a":1}}', "{'a':1}", '{"a":"'])(
    "refuses %j with a 400",
    (text) => {
      const error = refusal(text);
      expect(error).toBeInstanceOf(ServiceError);
      expect(error.status).toBe(400);
      expect(error.row.type).toBe("Bad Request");
    },
  );

  it("refuses bytes that are not UTF-8", () => {
    expect(() => parseJsonObject(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))).toThrow(/UTF-8/);
  });

  it("refuses deep nesting without recursion", () => {
    expect(refusal(`{"a":${"[".repeat(10_000)}${"]".repeat(10_000)}}`).message).toMatch(/nested/);
    expect(refusal(`{"a":${'{"a":'.repeat(10_000)}`).message).toMatch(/nested/);
    expect(parse(`{"a":${"[".repeat(MAX_DEPTH - 1)}${"]".repeat(MAX_DEPTH - 1)}}`)).toHaveProperty("a");
    expect(parse(`{"a":"${"[".repeat(10_000)}"}`)).toEqual({ a: "[".repeat(10_000) });
  });

  it("refuses bodies with too many values, without counting inside strings", () => {
    const list = (items: number) => `{"a":[${"1,".repeat(items - 1)}1]}`;
    expect(parse(list(MAX_VALUES - 3))).toHaveProperty("a");
    for (const text of [list(MAX_VALUES + 1), "[".repeat(5) + list(MAX_VALUES)]) {
      expect(refusal(text)).toMatchObject({ status: 400, message: expect.stringMatching(/200000 values/) });
    }
    expect(parse(JSON.stringify({ a: "1,[".repeat(MAX_VALUES) }))).toHaveProperty("a");
  });

  it("refuses bodies with too many texts, lists and objects, and with too many numbers that templates may print", () => {
    const refused = { status: 400, message: expect.stringMatching(/60000 texts, lists and objects/) };
    const list = (item: string, items: number, field = "a") => `{"${field}":[${`${item},`.repeat(items - 1)}${item}]}`;
    expect(parse(list("{}", MAX_PARTS - 3))).toHaveProperty("a");
    for (const item of ["{}", "[]", '"x"']) expect(refusal(list(item, MAX_PARTS))).toMatchObject(refused);
    expect(refusal(list('{"a":1}', MAX_PARTS / 2))).toMatchObject(refused);
    expect(refusal(list("1", MAX_PARTS + 2, "tools")).message).toMatch(/60000 values in messages, tools or/);
    const fields = (count: number) => `{${Array.from({ length: count }, (_, i) => `"a${i}":1`).join(",")}}`;
    expect(parse(fields(1000))).toHaveProperty("a999");
    expect(refusal(fields(1001)).message).toMatch(/more than 1000 fields/);
    expect(new InnerJson().parse(fields(1001))).toHaveProperty("a1000");
    expect(parse(`{"tools":[],"prompt":[${"1,".repeat(MAX_PARTS)}1]}`)).toHaveProperty("prompt");
  });

  it("counts the JSON texts of one request together", () => {
    const inner = new InnerJson();
    const text = `[${"{},".repeat(MAX_PARTS / 2)}1]`;
    inner.parse(text);
    expect(() => inner.parse(text)).toThrow(/The JSON text has more than 60000 texts, lists and objects/);
  });

  it("keeps the written form only of numbers that templates print", () => {
    const exact = (written: string) => ({ "\0number": written });
    expect(parse('{"chat_template_kwargs":{"a":1.0,"b":1,"c":"1.0"},"temperature":1.0}')).toEqual({
      chat_template_kwargs: { a: exact("1.0"), b: 1, c: "1.0" },
      temperature: 1,
    });
    expect(
      parse('{"tools":[{"function":{"strict":1.0,"parameters":{"parameters":[2.0]}}}],"x":{"parameters":[3.0]}}'),
    ).toEqual({
      tools: [{ function: { strict: 1, parameters: { parameters: [exact("2.0")] } } }],
      x: { parameters: [3] },
    });
    expect(parse('{"messages":[{"a":"\\"arguments\\":[1.0]","arguments" : {"n":1e2}}],"m":"tools"}')).toEqual({
      messages: [{ a: '"arguments":[1.0]', arguments: { n: exact("1e2") } }],
      m: "tools",
    });
  });

  it.each(["1.", "-.0", "00.0", "1.0 2.0", "1.0e", "{1.0:2}", "1.0]"])("refuses %s there too", (written) => {
    expect(() => parse(`{"chat_template_kwargs":{"a":${written}}}`)).toThrow(/not valid JSON/);
  });

  it("quotes malformed text as written", () => {
    expect(() => parse('{"chat_template_kwargs":{"a":1.0},"b":}')).toThrow(/":1\.0},"b":}/);
  });

  it("keeps long integers in the outermost object exact", () => {
    const body = parse(
      '{"seed":9223372036854775808,"messages":[{"x":9223372036854775808}],"priority":-9223372036854775808}',
    );
    expect(body.seed).toBe(9223372036854775808n);
    expect(body.priority).toBe(-9223372036854775808n);
    expect(body.messages).toEqual([{ x: 2 ** 63 }]);
  });

  it("is not fooled by escapes, strings that look like numbers, floats and repeated keys", () => {
    expect(parse('{"a\\"":12345678901234567,"b":"\\\\","c":"12345678901234567"}')).toEqual({
      'a"': 12345678901234567n,
      b: "\\",
      c: "12345678901234567",
    });
    expect(parse('{"a":12345678901234567.0,"b":1e30,"s\\u0065ed":12345678901234567}')).toEqual({
      a: 12345678901234568,
      b: 1e30,
      seed: 12345678901234567n,
    });
    expect(parse('{"a":12345678901234567,"a":5}')).toEqual({ a: 5 });
    expect(parse(`{"a":${"9".repeat(100)}}`)).toEqual({ a: 1e100 });
  });

  it("agrees with JSON.parse on every object without long integers", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (object) => {
        const text = JSON.stringify(object);
        const back = parse(text);
        for (const [key, value] of Object.entries(JSON.parse(text) as Record<string, unknown>)) {
          expect(typeof back[key] === "bigint" ? Number(back[key]) : back[key]).toEqual(value);
        }
      }),
    );
  });

  it("reads 16 MB of hard input without delay", () => {
    const text = `{"messages":[{"role":"user","content":"${'a\\"[{1234567890123456789'.repeat(700_000)}"}],"seed":1}`;
    expect(parse(text).seed).toBe(1);
  });
});
