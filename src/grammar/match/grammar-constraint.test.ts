import { describe, expect, test } from "vitest";
import { schemas } from "../../../test/grammar/schemas.ts";
import {
  byteVocabulary,
  clumpedVocabulary,
  keyOf,
  legalTokens,
  plainJson,
  random,
  Walker,
} from "../../../test/grammar/walk.ts";
import { unpackProgram } from "../automaton/program.ts";
import type { OutputShape } from "../constraint.ts";
import { GrammarConstraintFactory } from "./constraint-factory.ts";
import { Matcher } from "./matcher.ts";

const schema = (value: unknown): OutputShape => ({ kind: "json_schema", schema: value as never, json: plainJson });
const bytes = new Walker(byteVocabulary);
const clumps = new Walker(clumpedVocabulary);
const stopId = clumpedVocabulary.size - 1;

test("masks are exactly the tokens the automaton can follow", () => {
  const shapes: OutputShape[] = [
    // The automaton alone does not keep items apart.
    ...Object.values(schemas)
      .filter((each) => !JSON.stringify(each).includes("uniqueItems"))
      .map(schema),
    schema({
      type: "object",
      properties: { s: { type: "string", minLength: 200, maxLength: 900 }, t: { type: "string", maxLength: 400 } },
      required: ["s"],
    }),
    { kind: "regex", pattern: "[ab]{3,500}c|(?:x{1,300}y)*" },
    { kind: "grammar", source: 'root ::= e\ne ::= e "+" e | "(" e ")" | [a-z]+ | "true"' },
  ];
  const { bytes: all, offsets, size } = clumpedVocabulary;
  for (const [index, shape] of shapes.entries()) {
    const key = keyOf(shape);
    const matcher = new Matcher(unpackProgram(key.slice(64)));
    if (matcher.program.marks.length > 0) continue; // a check beside the automaton removes more (see distinct/)
    const constraint = clumps.factory.create(key, [stopId], false);
    const draw = random(index);
    let at = matcher.start();
    for (let step = 0; step < 40; step++) {
      const legal = legalTokens(constraint.mask()!, size);
      const expected = Array.from({ length: size }, (_, id) => id).filter((id) => {
        if (id === stopId) return at.accepting;
        return matcher.advanceBytes(at, all.subarray(offsets[id]!, offsets[id + 1]!)) !== null;
      });
      expect(legal).toEqual(expected);
      const next = legal[Math.floor(draw() * legal.length)]!;
      if (next === stopId) break;
      constraint.accept(next);
      at = matcher.advanceBytes(at, all.subarray(offsets[next]!, offsets[next + 1]!))!;
    }
  }
});

describe("the end of a text", () => {
  const key = keyOf({ kind: "choice", choices: ["ab", "abc"] });
  const legal = (constraint: { mask(): Int32Array | null }) => legalTokens(constraint.mask()!, byteVocabulary.size);
  const [a, b, c] = [0x61, 0x62, 0x63];

  test("stop ids are legal only where the text may end, and nothing else is where it must end", () => {
    // 0x63 is an ordinary token that the request also stops at.
    const constraint = bytes.factory.create(key, [256, c], false);
    expect(legal(constraint)).toEqual([a]);
    constraint.accept(a);
    expect(legal(constraint)).toEqual([b]);
    constraint.accept(b);
    expect(legal(constraint)).toEqual([c, 256]);
    const other = bytes.factory.create(key, [256], false);
    for (const id of [a, b, c]) other.accept(id);
    expect(legal(other)).toEqual([256]);
  });

  test("with ignore_eos the mask is lifted once the text is complete or has been ended", () => {
    const complete = bytes.factory.create(key, [256], true);
    for (const id of [a, b, c]) complete.accept(id);
    expect(complete.mask()).toBeNull();
    complete.accept(7);
    expect(complete.mask()).toBeNull();
    const ended = bytes.factory.create(key, [256], true);
    for (const id of [a, b]) ended.accept(id);
    expect(legal(ended)).toEqual([c, 256]);
    ended.accept(256);
    expect(ended.mask()).toBeNull();
  });

  test("an illegal token is an error", () => {
    const constraint = bytes.factory.create(key, [256], false);
    expect(() => constraint.accept(c)).toThrow(/token 99 is not legal/);
    expect(() => constraint.accept(256)).toThrow(/not legal/);
  });

  test("a vocabulary that cannot spell the constraint is an error", () => {
    const few = { size: 2, bytes: Uint8Array.of(0x61), offsets: Int32Array.of(0, 1, 1) };
    const constraint = new GrammarConstraintFactory(few).create(key, [1], false);
    constraint.accept(0);
    expect(() => constraint.mask()).toThrow(/No token of this model's vocabulary/);
  });
});

describe("forced tokens", () => {
  test("are the tokens with no alternative at their position", () => {
    const constraint = bytes.factory.create(keyOf(schema({ const: { name: "Ada" } })), [256], false);
    constraint.accept(0x7b);
    expect(constraint.forced()).toEqual([]); // a space, a line break or the key
    constraint.accept(0x22);
    expect(bytes.textOf(constraint.forced())).toBe('name":');
    const compact = bytes.factory.create(keyOf({ kind: "choice", choices: ["only this"] }), [256], false);
    expect(bytes.textOf(compact.forced())).toBe("only this");
    expect(clumps.factory.create(keyOf({ kind: "choice", choices: ["hello"] }), [stopId], false).forced()).toEqual([]);
  });

  test("are the only legal tokens at each step", () => {
    const key = keyOf(schema(schemas["a person"]));
    const draw = random(3);
    const constraint = clumps.factory.create(key, [stopId], false);
    for (let step = 0; step < 80; step++) {
      for (const token of constraint.forced()) {
        expect(legalTokens(constraint.mask()!, clumpedVocabulary.size)).toEqual([token]);
        constraint.accept(token);
      }
      const legal = legalTokens(constraint.mask()!, clumpedVocabulary.size);
      const next = legal[Math.floor(draw() * legal.length)]!;
      if (next === stopId) break;
      constraint.accept(next);
    }
  });
});

test("a sequence that becomes too ambiguous ends, and the grammar stays usable", () => {
  const source = 'root ::= e\ne ::= e e | e e e | [a-z ] | ""';
  const key = keyOf({ kind: "grammar", source });
  const run = () => {
    const constraint = clumps.factory.create(key, [stopId], false);
    for (let step = 0; step < 3000; step++) {
      constraint.mask();
      constraint.accept(0x61);
    }
  };
  expect(run).toThrow(/too ambiguous/);
  expect(run).toThrow(/too ambiguous/);
});
