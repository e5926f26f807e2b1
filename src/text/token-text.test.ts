import fc from "fast-check";
import { expect, test } from "vitest";
import { ByteTokenizer } from "../../test/fakes/byte-tokenizer.ts";
import { TokenTextWalk } from "./token-text.ts";
import type { Tokenizer } from "./tokenizer-contract.ts";
import { decodeUtf8, encodeUtf8, incompleteTail } from "./utf8.ts";

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

test("however tokens cut characters, each shows what it completes, with the bytes before it if it goes on with them", () => {
  const cutTexts = fc
    .tuple(fc.string({ unit: "binary", minLength: 1, maxLength: 6 }), fc.nat(8), fc.nat(8))
    .map(([text, from, length]) => encodeUtf8(text).slice(from, from + length));
  const tokens = fc.array(fc.oneof(cutTexts, fc.uint8Array({ maxLength: 4 })), { minLength: 1, maxLength: 6 });
  const walked = fc.array(fc.nat(), { maxLength: 12 });
  fc.assert(
    fc.property(tokens, walked, (bytes, steps) => {
      const pieces = { vocabSize: bytes.length, bytes: (id: number) => bytes[id] ?? new Uint8Array(0) } as Tokenizer;
      const walk = new TokenTextWalk(pieces);
      let before: number[] = [];
      let joined = "";
      for (const step of steps) {
        // One id is beyond the vocabulary.
        const all = [...bytes.keys(), bytes.length].map((id) => ({ id, own: [...pieces.bytes(id)] }));
        const tail = before.slice(before.length - incompleteTail(Uint8Array.from(before)));
        const expected = all.map(({ own }) => {
          const joined = Uint8Array.from([...((own[0] ?? 0) >> 6 === 2 ? tail : []), ...own]);
          return { token: decodeUtf8(joined.subarray(0, joined.length - incompleteTail(joined))), bytes: own };
        });
        expect(all.map(({ id }) => walk.describe(id))).toEqual(expected);
        expect(all.map(({ id }) => walk.text(id))).toEqual(expected.map(({ token }) => token));
        const { id, own } = all[step % all.length]!;
        const advanced = walk.advance(id);
        expect(advanced.bytes).toEqual(own);
        joined += advanced.token;
        before = [...before, ...own];
        const text = Uint8Array.from(before);
        expect(joined).toBe(decodeUtf8(text.subarray(0, text.length - incompleteTail(text))));
      }
    }),
  );
});
