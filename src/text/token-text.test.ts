import fc from "fast-check";
import { expect, test } from "vitest";
import { ByteTokenizer } from "../../test/support/byte-tokenizer.ts";
import { TokenTextWalk } from "./token-text.ts";
import type { Tokenizer } from "./tokenizer-contract.ts";
import { encodeUtf8 } from "./utf8.ts";

const tokenizer = new ByteTokenizer();

test("only the token that completes a character shows it; bytes are the token's own", () => {
  const walk = new TokenTextWalk(tokenizer);
  const [first, second, third] = encodeUtf8("中");
  expect(walk.advance(first!)).toEqual({ token: "", bytes: [first] });
  expect(walk.advance(second!)).toEqual({ token: "", bytes: [second] });
  expect(walk.describe(0x61)).toEqual({ token: "a", bytes: [0x61] });
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

test.each<[string, number[][], string[]]>([
  ["text before a cut character waits for its end", [[0x20, 0xc3], [0xa9]], ["", " é"]],
  [
    "a token that completes one character and begins another",
    [
      [0xe4, 0xbd],
      [0xa0, 0xe5],
      [0xa5, 0xbd],
    ],
    ["", "", "你好"],
  ],
  [
    "a token that completes a character and goes on",
    [
      [0xe4, 0xbd],
      [0xa0, 0x61],
    ],
    ["", "你a"],
  ],
  ["a byte that nothing completes", [[0x96], [0x61]], ["", "a"]],
  ["such a byte before a cut character", [[0x96], [0xe4], [0xbd], [0xa0]], ["", "", "", "你"]],
  ["a beginning that is given up", [[0xe4, 0xbd], [0x61], [0xa0]], ["", "a", ""]],
])("%s", (_name, tokens, texts) => {
  const pieces = { vocabSize: tokens.length, bytes: (id: number) => Uint8Array.from(tokens[id]!) } as Tokenizer;
  const walk = new TokenTextWalk(pieces);
  expect(tokens.map((_bytes, id) => walk.advance(id).token)).toEqual(texts);
});

test("however characters are cut into tokens, the texts joined are the text", () => {
  const cuts = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1 });
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), cuts, (text, lengths) => {
      const pieces = [...text].flatMap((char, i) => {
        const [bytes, cut] = [encodeUtf8(char), lengths[i % lengths.length]!];
        return [bytes.slice(0, cut), bytes.slice(cut)].filter((piece) => piece.length > 0);
      });
      const tokenizer = { vocabSize: pieces.length, bytes: (id: number) => pieces[id]! } as Tokenizer;
      const walk = new TokenTextWalk(tokenizer);
      let joined = "";
      for (const id of pieces.keys()) {
        const alternatives = [...pieces.keys()].map((other) => walk.describe(other));
        expect(alternatives.map(({ bytes: own }) => own)).toEqual(pieces.map((piece) => [...piece]));
        const { token } = walk.advance(id);
        expect(token).toBe(alternatives[id]!.token);
        joined += token;
      }
      // A character U+FFFD that the text itself ends with looks like one that is cut.
      expect(joined).toBe(text.replace(/\ufffd+$/, ""));
    }),
  );
});
