import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compileConstraint } from "../compile.ts";
import type { OutputShape, ReasoningPrefix } from "../constraint.ts";
import { GrammarError } from "../grammar-error.ts";
import type { JsonValue } from "../json-schema/keywords.ts";
import { FreeText } from "./free-text.ts";
import { type Configuration, Matcher } from "./matcher.ts";
import { TokenMasks } from "./token-masks.ts";
import { TokenTrie, tokenBytes } from "./token-trie.ts";
import type { TokenVocabulary } from "./token-vocabulary.ts";

const json = { compact: false, closedObjects: false, whitespacePattern: null };

/** Words, punctuation in clumps, long runs, several scripts, halves of characters and bytes that are no text. */
const piece: fc.Arbitrary<readonly number[]> = fc.oneof(
  { weight: 6, arbitrary: textOf("abcdefgxyz", 1, 8) },
  { weight: 2, arbitrary: textOf("abc", 1, 24) },
  { weight: 3, arbitrary: textOf('ab "\\,:{}[]\n', 1, 5) },
  { weight: 2, arbitrary: textOf("0123456789.-eE", 1, 4) },
  { weight: 2, arbitrary: textOf("aé中\u{1f600}ß\u2028…\u2029\u2000 ", 1, 5) },
  { weight: 1, arbitrary: textOf(" ", 1, 30) },
  {
    weight: 1,
    arbitrary: textOf("a中é", 1, 4).chain((bytes) => fc.nat(bytes.length - 1).map((cut) => bytes.slice(cut))),
  },
  {
    weight: 1,
    arbitrary: textOf("a中é", 1, 4).chain((bytes) => fc.nat(bytes.length - 1).map((cut) => bytes.slice(0, cut + 1))),
  },
  {
    weight: 1,
    arbitrary: fc.array(fc.constantFrom(0x61, 0x80, 0xbf, 0xc2, 0xe0, 0xed, 0xf4, 0xff), {
      minLength: 1,
      maxLength: 4,
    }),
  },
);

const vocabulary: fc.Arbitrary<TokenVocabulary> = fc
  .array(piece, { minLength: 300, maxLength: 500 })
  .map((pieces) => vocabularyOf([...Array.from({ length: 256 }, (_, byte) => [byte]), ...pieces]));

const name = fc.constantFrom("a", "ab", "abc", "b", "é", "x y", "10");
const text: fc.Arbitrary<JsonValue> = fc.oneof(
  fc.constant({ type: "string" }),
  fc.record({ type: fc.constant("string"), minLength: fc.nat(5), maxLength: fc.integer({ min: 5, max: 60 }) }),
  // Longer than any token, so that many positions have the same mask.
  fc.record({
    type: fc.constant("string"),
    minLength: fc.constantFrom(0, 1, 140),
    maxLength: fc.integer({ min: 140, max: 300 }),
  }),
  fc.record({
    type: fc.constant("string"),
    pattern: fc.constantFrom(
      "^[a-c]+$",
      "^[a-z][a-z0-9_]*$",
      "b",
      "^a{2,20}b?$",
      "^[^a]*$",
      "^(ab|中)*$",
      "^\\w+( \\w+)*$",
      "^.{3,}$",
      "^.*$",
      "^\\S+$",
      "([0-9a-f]{2}:){2}",
    ),
  }),
  fc.record({ type: fc.constant("string"), format: fc.constantFrom("date", "email", "uuid", "hostname") }),
  fc.record({ enum: fc.array(fc.oneof(name, fc.nat(120)), { minLength: 1, maxLength: 5 }) }),
);
const schema: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue; object: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 2, depthIdentifier: "schema" },
    text,
    fc.constant({ type: "integer", minimum: 3, maximum: 1200 }),
    fc.constant({ type: "number" }),
    fc.constant(true as JsonValue),
    tie("object"),
    fc.record({ type: fc.constant("array"), items: tie("value"), maxItems: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ anyOf: fc.array(tie("value"), { minLength: 2, maxLength: 3 }) }),
  ),
  object: fc.record({
    type: fc.constant("object"),
    properties: fc.dictionary(name, tie("value"), { maxKeys: 3 }),
    additionalProperties: fc.oneof(fc.boolean(), tie("value")),
  }),
})).object;

/** Many names at once, and the same kinds of text in many places. */
const wide: fc.Arbitrary<JsonValue> = fc.record({
  type: fc.constant("object"),
  properties: fc.dictionary(
    textOf("abcde", 1, 4).map((bytes) => String.fromCharCode(...bytes)),
    text,
    { minKeys: 10 },
  ),
  additionalProperties: fc.oneof(fc.boolean(), text),
});

const shape: fc.Arbitrary<OutputShape> = fc.oneof(
  { weight: 5, arbitrary: schema.map((value) => ({ kind: "json_schema", schema: value, json }) as const) },
  { weight: 2, arbitrary: wide.map((value) => ({ kind: "json_schema", schema: value, json }) as const) },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(
        "[a-z]*",
        "a.*b",
        "(a|ab)(c|bcd)*",
        "[^\\n]{0,40}\\n?",
        "\\p{L}+",
        "(?:[a-c]{3} ?){1,30}",
        "中*[a-f]+",
        "([a-c]x|[b-d]y)*",
      )
      .map((pattern) => ({ kind: "regex", pattern }) as const),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(
        'root ::= e\ne ::= e "," e | [a-z]+',
        'root ::= "(" root ")" | [^()]*',
        'root ::= "a" root "b" | ""',
      )
      .map((source) => ({ kind: "grammar", source }) as const),
  },
);
const reasoning: fc.Arbitrary<ReasoningPrefix | null> = fc.constantFrom(null, null, null, {
  start: "<a>",
  end: "ab\n",
  mode: "open",
});

function textOf(letters: string, minLength: number, maxLength: number): fc.Arbitrary<number[]> {
  return fc
    .array(fc.constantFrom(...Array.from(letters)), { minLength, maxLength })
    .map((chosen) => [...new TextEncoder().encode(chosen.join(""))]);
}

function vocabularyOf(pieces: readonly (readonly number[])[]): TokenVocabulary {
  const offsets = new Int32Array(pieces.length + 1);
  for (const [index, { length }] of pieces.entries()) offsets[index + 1] = offsets[index]! + length;
  return { size: pieces.length, bytes: Uint8Array.from(pieces.flat()), offsets };
}

/** Tries every token on its own. */
function slowly(matcher: Matcher, at: Configuration, vocabulary: TokenVocabulary): number[] {
  return ids(vocabulary).filter((id) => matcher.advanceBytes(at, tokenBytes(vocabulary, id)) !== null);
}

function ids({ size }: TokenVocabulary): number[] {
  return Array.from({ length: size }, (_, id) => id);
}

describe("TokenMasks", () => {
  it("holds exactly the tokens that the automaton can follow", () => {
    fc.assert(
      fc.property(vocabulary, shape, reasoning, fc.infiniteStream(fc.nat()), (tokens, output, prefix, choices) => {
        const program = compiled(output, prefix);
        if (program === null) return;
        const trie = new TokenTrie(tokens);
        const masks = new TokenMasks(new Matcher(program), trie, new FreeText(trie));
        const judge = new Matcher(program);
        let at = masks.matcher.start();
        let judged = judge.start();
        for (let step = 0; step < 25; step++) {
          const mask = masks.of(at);
          const legal = ids(tokens).filter((id) => (mask[id >>> 5]! >>> (id & 31)) & 1);
          expect(legal).toEqual(slowly(judge, judged, tokens));
          if (legal.length === 0) break;
          const next = tokenBytes(tokens, legal[choices.next().value! % legal.length]!);
          at = masks.matcher.advanceBytes(at, next)!;
          judged = judge.advanceBytes(judged, next)!;
        }
      }),
      { numRuns: 120, endOnFailure: true }, // shrinking a vocabulary takes minutes
    );
  }, 60_000);

  it("shares one mask among all positions of a string that are far from its bounds", () => {
    const masks = masksOf({ type: "string", minLength: 1, maxLength: 400 }, vocabularyOf([...'abc"{}: '].map(bytesOf)));
    const maskAfter = (text: string) => masks.of(masks.matcher.advanceBytes(masks.matcher.start(), Buffer.from(text))!);
    expect(maskAfter('"abc')).toBe(maskAfter(`"${"b".repeat(100)}`));
    expect(maskAfter(`"${"b".repeat(398)}`)).not.toBe(maskAfter('"abc'));
  });

  it.each<Record<string, JsonValue>>([
    { maxLength: 400 },
    { maxLength: 20 },
    { minLength: 1 },
    {},
    { pattern: "^.*$" },
  ])("looks at few tokens inside strings of every member, with %j", (bounds) => {
    const words = Array.from({ length: 16_000 }, (_, i) => String.fromCodePoint(0x4e00 + i));
    const value = { type: "string", ...bounds };
    const schema = { type: "object", properties: { a: value, b: value, c: value, d: value } };
    const masks = masksOf(schema, vocabularyOf([...words, ...'abcxyz"{}:, \\'].map(bytesOf)));
    let at = masks.matcher.start();
    const work = ['{"a":"xy', 'z","b":"xy', 'z","c":"xy', 'z","d":"xyz'].map((text) => {
      at = masks.matcher.advanceBytes(at, Buffer.from(text))!;
      masks.matcher.allowance = 1_000_000;
      masks.of(at);
      return 1_000_000 - masks.matcher.allowance;
    });
    expect(Math.max(...work)).toBeLessThan(words.length / 40);
  });
});

function masksOf(schema: JsonValue, tokens: TokenVocabulary): TokenMasks {
  const program = compileConstraint({ shape: { kind: "json_schema", schema, json }, reasoning: null });
  const trie = new TokenTrie(tokens);
  return new TokenMasks(new Matcher(program), trie, new FreeText(trie));
}

function bytesOf(text: string): readonly number[] {
  return [...Buffer.from(text)];
}

function compiled(output: OutputShape, prefix: ReasoningPrefix | null) {
  try {
    return compileConstraint({ shape: output, reasoning: prefix });
  } catch (error) {
    if (error instanceof GrammarError) return null;
    throw error;
  }
}
