import { describe, expect, it } from "vitest";
import { crc32c, encodeEventFile } from "./tensorboard.ts";

describe("TensorBoard event files", () => {
  it("uses the Castagnoli checksum", () => {
    expect(crc32c(new TextEncoder().encode("123456789"))).toBe(0xe3069283);
    expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa);
  });

  it("has the bytes a reader expects, record by record", () => {
    const file = encodeEventFile([{ step: 300, time: 2, values: { loss: 1.5 } }]);
    const view = new DataView(file.buffer);
    const records: Uint8Array[] = [];
    for (let at = 0; at < file.length; ) {
      const length = Number(view.getBigUint64(at, true));
      const unmask = (masked: number) => {
        const rotated = (masked - 0xa282ead8) >>> 0;
        return ((rotated >>> 17) | (rotated << 15)) >>> 0;
      };
      expect(unmask(view.getUint32(at + 8, true))).toBe(crc32c(file.subarray(at, at + 8)));
      records.push(file.subarray(at + 12, at + 12 + length));
      expect(unmask(view.getUint32(at + 12 + length, true))).toBe(crc32c(records.at(-1)!));
      at += 16 + length;
    }
    const hex = records.map((record) => Buffer.from(record).toString("hex"));
    const two = "090000000000000040";
    expect(hex[0]).toBe(`${two}10001a0d${Buffer.from("brain.Event:2").toString("hex")}`);
    // step 300, summary { value { tag: "loss", simple_value: 1.5 } }
    expect(hex[1]).toBe(`${two}10ac022a0d0a0b0a04${Buffer.from("loss").toString("hex")}150000c03f`);
  });
});
