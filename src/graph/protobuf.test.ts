import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProtoWriter } from "./protobuf.ts";

/** An independent reader: field number, wire type, and the value as bigint or bytes. */
function read(bytes: Uint8Array): { field: number; value: bigint | Uint8Array }[] {
  const fields = [];
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]!;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const wireType = tag % 8;
    if (wireType === 0) fields.push({ field: tag >> 3, value: varint() });
    else {
      const length = wireType === 2 ? Number(varint()) : 4;
      fields.push({ field: tag >> 3, value: bytes.slice(at, at + length) });
      at += length;
    }
  }
  return fields;
}

describe("ProtoWriter", () => {
  it("writes integers of any size and sign as 64-bit two's complement", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1000 }),
        fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
        (field, value) => {
          const expected = [{ field, value: BigInt.asUintN(64, value) }];
          expect(read(new ProtoWriter().int(field, value).finish())).toEqual(expected);
          if (value < 0n && value > -(2n ** 53n)) {
            expect(read(new ProtoWriter().int(field, Number(value)).finish())).toEqual(expected);
          }
        },
      ),
    );
    expect(read(new ProtoWriter().int(1, Number.MAX_SAFE_INTEGER).finish())[0]!.value).toBe(2n ** 53n - 1n);
  });

  it("writes floats, strings and nested messages, growing as needed", () => {
    const long = "ü".repeat(5000);
    const inner = new ProtoWriter().string(3, long);
    const fields = read(new ProtoWriter().float(2, 1.5).message(7, inner).int(1, 300).finish());
    expect(fields.map(({ field }) => field)).toEqual([2, 7, 1]);
    expect(new DataView((fields[0]!.value as Uint8Array).buffer).getFloat32(0, true)).toBe(1.5);
    expect(new TextDecoder().decode(read(fields[1]!.value as Uint8Array)[0]!.value as Uint8Array)).toBe(long);
    expect(fields[2]!.value).toBe(300n);
  });
});
