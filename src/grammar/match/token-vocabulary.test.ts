import { expect, test } from "vitest";
import { keyOf, legalTokens, plainJson, random } from "../../../test/grammar/walk.ts";
import type { OutputShape } from "../constraint.ts";
import { GrammarConstraintFactory } from "./constraint-factory.ts";
import { tokenVocabulary } from "./token-vocabulary.ts";

const schema = (value: unknown): OutputShape => ({ kind: "json_schema", schema: value as never, json: plainJson });

test("special tokens have no bytes, except markers", () => {
  const pieces = ["<s>", "</think>", "a", "▁b"];
  const encoder = new TextEncoder();
  const source = {
    vocabSize: 4,
    bytes: (id: number) => encoder.encode(pieces[id]!.replace("▁", " ")),
    piece: (id: number) => pieces[id]!,
    isSpecial: (id: number) => id < 2,
  };
  const vocabulary = tokenVocabulary(source, 6, ["</think>"]);
  expect([...vocabulary.offsets]).toEqual([0, 0, 8, 9, 11, 11, 11]);
  expect(new TextDecoder().decode(vocabulary.bytes)).toBe("</think>a b");
});

test("SentencePiece pieces with word boundaries and byte fallback spell every text", () => {
  const words = ["▁", "▁the", "▁yes", "yes", "ye", "▁{", "{", '"', '":', "▁1", "name", '▁"', "}", "é", "▁中"];
  const pieces = [
    "<unk>",
    "<s>",
    "</s>",
    ...Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`),
    ...words,
  ];
  const encoder = new TextEncoder();
  const vocabulary = tokenVocabulary(
    {
      vocabSize: pieces.length,
      bytes: (id) => (id >= 3 && id < 259 ? Uint8Array.of(id - 3) : encoder.encode(pieces[id]!.replaceAll("▁", " "))),
      piece: (id) => pieces[id]!,
      isSpecial: (id) => id < 3,
    },
    pieces.length + 5, // a padded output layer
  );
  const factory = new GrammarConstraintFactory(vocabulary);
  const generate = (key: string, seed: number): string => {
    const constraint = factory.create(key, [2], false);
    const draw = random(seed);
    const out: number[] = [];
    for (let step = 0; step < 4000; step++) {
      const legal = legalTokens(constraint.mask()!, vocabulary.size);
      const next = legal[Math.floor(draw() * legal.length)]!;
      if (next === 2) break;
      out.push(...vocabulary.bytes.subarray(vocabulary.offsets[next]!, vocabulary.offsets[next + 1]!));
      constraint.accept(next);
    }
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(out));
  };
  const choice = keyOf({ kind: "choice", choices: ["yes", " the yes", "中é"] });
  const named = keyOf(
    schema({ type: "object", properties: { name: { type: "string", maxLength: 8 } }, required: ["name"] }),
  );
  for (let seed = 0; seed < 30; seed++) {
    expect(["yes", " the yes", "中é"]).toContain(generate(choice, seed));
    expect(JSON.parse(generate(named, seed))).toHaveProperty("name");
  }
});
