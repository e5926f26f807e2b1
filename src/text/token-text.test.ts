import fc from "fast-check";
import { expect, test } from "vitest";
import { ByteTokenizer } from "../../test/fakes/byte-tokenizer.ts";
import { TokenTextWalk } from "./token-text.ts";
import { encodeUtf8 } from "./utf8.ts";

const tokenizer = new ByteTokenizer();

test("only the token that completes a character shows it; bytes are the token's own", () => {
  const walk = new TokenTextWalk(tokenizer);
  const [first, second, third] = encodeUtf8("中");
  expect(walk.advance(first!)).toEqual({ token: "", bytes: [first] });
  expect(walk.advance(second!)).toEqual({ token: "", bytes: [second] });
  expect(walk.describe(0x61)).toEqual({ token: "\ufffda", bytes: [0x61] });
  expect(walk.advance(third!)).toEqual({ token: "中", bytes: [third] });
  expect(walk.advance(0x61)).toEqual({ token: "a", bytes: [0x61] });
});

test("special tokens are shown as their text", () => {
  expect(new TokenTextWalk(tokenizer).advance(2)).toEqual({ token: "</s>", bytes: [...encodeUtf8("</s>")] });
});

test("ids instead of texts", () => {
  const walk = new TokenTextWalk(tokenizer, { asIds: true });
  expect(walk.advance(0x61)).toEqual({ token: "token_id:97", bytes: [0x61] });
});

test("tokens joined are the text, bytes joined are its bytes", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      const walk = new TokenTextWalk(tokenizer);
      const entries = [...encodeUtf8(text)].filter((byte) => byte > 2).map((byte) => walk.advance(byte));
      const expected = [...text].filter((char) => char > "\x02").join("");
      expect(entries.map((entry) => entry.token).join("")).toBe(expected);
      expect(entries.flatMap((entry) => entry.bytes)).toEqual([...encodeUtf8(expected)]);
    }),
  );
});
