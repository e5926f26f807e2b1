import fc from "fast-check";
import { expect, test } from "vitest";
import { concatBytes, decodeUtf8, encodeUtf8, incompleteTail } from "./utf8.ts";

test.each([
  ["ascii", [0x61], 0],
  ["nothing", [], 0],
  ["lead of two", [0x61, 0xc3], 1],
  ["lead of three", [0xe4], 1],
  ["two of three", [0xe4, 0xb8], 2],
  ["three of four", [0xf0, 0x9f, 0x98], 3],
  ["a complete character", [0xe4, 0xb8, 0xad], 0],
  ["a lone continuation byte", [0x80], 0],
  ["an impossible lead byte", [0xff], 0],
  ["an overlong form", [0xe0, 0x80], 0],
  ["a surrogate", [0xed, 0xa0], 0],
  ["beyond the last character", [0xf4, 0x90], 0],
  ["an overlong lead", [0xc0], 0],
  ["four continuation bytes", [0x80, 0x80, 0x80, 0x80], 0],
])("the incomplete tail of %s", (_name, bytes, expected) => {
  expect(incompleteTail(Uint8Array.from(bytes))).toBe(expected);
});

test("cutting before the incomplete tail and decoding piece by piece equals decoding at once", () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 5 }), { maxLength: 12 });
  const valid = fc.array(fc.string({ unit: "binary", maxLength: 3 }), { maxLength: 12 }).chain((texts) => {
    const bytes = encodeUtf8(texts.join(""));
    return fc.array(fc.nat({ max: bytes.length }), { maxLength: 10 }).map((cuts) => {
      const at = [0, ...cuts.sort((a, b) => a - b), bytes.length];
      return at.slice(1).map((end, i) => bytes.slice(at[i], end));
    });
  });
  fc.assert(
    fc.property(fc.oneof(pieces, valid), (chunks) => {
      let pending: Uint8Array = new Uint8Array(0);
      let whole: Uint8Array = new Uint8Array(0);
      let text = "";
      for (const chunk of chunks) {
        whole = concatBytes(whole, chunk);
        const bytes = concatBytes(pending, chunk);
        const complete = bytes.length - incompleteTail(bytes);
        text += decodeUtf8(bytes.subarray(0, complete));
        pending = bytes.slice(complete);
      }
      expect(text + decodeUtf8(pending)).toBe(decodeUtf8(whole));
    }),
  );
});
