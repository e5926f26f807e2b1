import { Type } from "typebox";
import { describe, expect, it } from "vitest";
import { ServiceError } from "../../errors/service-error.ts";
import { int64, orNull, readBody } from "./body.ts";

const Sample = Type.Object({
  name: Type.Optional(Type.String({ minLength: 1 })),
  count: orNull(Type.Integer({ minimum: 0, maximum: 10 })),
  ratio: orNull(Type.Number()),
  on: Type.Optional(Type.Boolean()),
  big: orNull(int64()),
  stop: orNull(Type.Union([Type.String(), Type.Array(Type.String())])),
  mode: Type.Optional(Type.Enum(["low", "high"])),
  bias: orNull(Type.Record(Type.String(), Type.Number())),
});

function outcome(body: unknown): unknown {
  try {
    return readBody(Sample, body).value;
  } catch (error) {
    const { message, param } = error as ServiceError;
    const kind = /: (\w+): /.exec(message)?.[1];
    return `${param} ${kind}`;
  }
}

describe("readBody", () => {
  it.each([
    [{ count: "2" }, { count: 2 }],
    [{ count: 5.0 }, { count: 5 }],
    [{ count: true }, { count: 1 }],
    [{ count: " 7 " }, { count: 7 }],
    [{ count: null }, { count: null }],
    [{ ratio: "0.5" }, { ratio: 0.5 }],
    [{ ratio: ".5e1" }, { ratio: 5 }],
    [{ ratio: false }, { ratio: 0 }],
    [{ on: "Yes" }, { on: true }],
    [{ on: 0 }, { on: false }],
    [{ big: 2n ** 63n - 1n }, { big: 2n ** 63n - 1n }],
    [{ big: "9223372036854775807" }, { big: 2n ** 63n - 1n }],
    [{ big: 9223372036854776000n }, { big: 2n ** 63n - 1n }],
    [{ big: -9223372036854776000n }, { big: -(2n ** 63n) }],
    [{ stop: "a" }, { stop: "a" }],
    [{ stop: ["a", "b"] }, { stop: ["a", "b"] }],
    [{ bias: { "1": "2.5" } }, { bias: { "1": 2.5 } }],
    [{ unknown: 1 }, {}],
  ])("accepts %o", (body, expected) => {
    expect(outcome(body)).toEqual(expected);
  });

  it.each([
    [{ name: 5 }, "body.name string_type"],
    [{ name: "" }, "body.name string_too_short"],
    [{ name: null }, "body.name string_type"],
    [{ count: 5.5 }, "body.count int_from_float"],
    [{ count: "x" }, "body.count int_parsing"],
    [{ count: [] }, "body.count int_type"],
    [{ count: -1 }, "body.count greater_than_equal"],
    [{ count: 11 }, "body.count less_than_equal"],
    [{ ratio: "hot" }, "body.ratio float_parsing"],
    [{ ratio: "nan" }, "body.ratio float_parsing"],
    [{ ratio: Number.POSITIVE_INFINITY }, "body.ratio finite_number"],
    [{ ratio: {} }, "body.ratio float_type"],
    [{ on: "maybe" }, "body.on bool_parsing"],
    [{ on: null }, "body.on bool_type"],
    [{ big: 2n ** 63n }, "body.big less_than_equal"],
    [{ big: -(2n ** 63n) - 1n }, "body.big greater_than_equal"],
    [{ stop: 5 }, "body.stop string_type"],
    [{ stop: ["a", 5] }, "body.stop.1 string_type"],
    [{ mode: "medium" }, "body.mode literal_error"],
    [{ bias: { "7": "x" } }, "body.bias.7 float_parsing"],
    [{ bias: [] }, "body.bias dict_type"],
    ["text", "body dict_type"],
    [null, "body dict_type"],
  ])("refuses %o", (body, expected) => {
    expect(outcome(body)).toBe(expected);
  });

  it("lists violations up to a limit and names the first", () => {
    const error = (() => {
      try {
        readBody(Sample, { name: 1, count: "x", stop: Array.from({ length: 1_000_000 }, () => 0) });
      } catch (caught) {
        return caught as ServiceError;
      }
      throw new Error("was accepted");
    })();
    expect(error).toBeInstanceOf(ServiceError);
    expect(error.param).toBe("body.name");
    expect(error.message).toMatch(/^20 or more validation errors:\n/);
    expect(error.message.split("\n")).toHaveLength(21);
  });

  it("refuses a megabyte of digits as a number without delay", () => {
    expect(outcome({ ratio: `${"1".repeat(1_000_000)}x` })).toBe("body.ratio float_parsing");
    expect(outcome({ count: `${"1".repeat(1_000_000)}x` })).toBe("body.count int_parsing");
  });

  it("reports unknown keys", () => {
    expect(readBody(Sample, { name: "x", later: 1, __proto__: 2 }).ignored).toEqual(["later"]);
  });

  it("does not let a body reach the prototype", () => {
    const body = JSON.parse('{"__proto__":{"on":true},"bias":{"__proto__":1}}');
    const { value } = readBody(Sample, body);
    expect(value.on).toBeUndefined();
    expect(Object.keys(value.bias!)).toEqual(["__proto__"]);
  });
});
