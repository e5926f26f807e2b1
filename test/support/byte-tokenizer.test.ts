import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ByteTokenizer } from "./byte-tokenizer.ts";

const tokenizer = new ByteTokenizer();

describe("ByteTokenizer", () => {
  it("has exactly the vocabulary of the fixture checkpoints", () => {
    const file = JSON.parse(readFileSync(new URL("../fixtures/llama/tokenizer.json", import.meta.url), "utf8"));
    const vocabulary = file.model.vocab as Record<string, number>;
    expect(Object.keys(vocabulary)).toHaveLength(tokenizer.vocabSize);
    for (const [piece, id] of Object.entries(vocabulary)) {
      expect(tokenizer.piece(id)).toBe(piece);
      expect(tokenizer.idOf(piece)).toBe(id);
    }
    expect(tokenizer.piece(256)).toBeNull();
    expect(tokenizer.idOf("the")).toBeNull();
  });

  it("recognises special tokens in text and hides them on request", () => {
    const ids = tokenizer.encode("<s>hé</s>");
    expect(ids).toEqual([1, 0x68, 0xc3, 0xa9, 2]);
    expect(tokenizer.decode(ids)).toBe("<s>hé</s>");
    expect(tokenizer.decode(ids, { skipSpecialTokens: true })).toBe("hé");
    expect(tokenizer.encode("\u0000\u0001\u0002a")).toEqual([97]);
  });

  it("decodes what it encoded", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        fc.pre(Buffer.from(text).every((byte) => byte > 2));
        expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
        const bytes = Buffer.concat(tokenizer.encode(text).map((id) => tokenizer.bytes(id)));
        expect(bytes.toString("utf8")).toBe(text);
      }),
    );
  });
});
