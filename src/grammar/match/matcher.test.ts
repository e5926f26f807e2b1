import fc from "fast-check";
import { expect, test } from "vitest";
import type { Program } from "../automaton/program.ts";
import { compileConstraint } from "../compile.ts";
import type { OutputShape } from "../constraint.ts";
import type { JsonValue } from "../json-schema/keywords.ts";
import { Matcher } from "./matcher.ts";

/** A state, and the states that its callers return to, innermost first. */
type Item = readonly [state: number, ...returns: number[]];

/** Runs a program in the obvious way: every item has a stack of its own. Never ends on left recursion. */
class SlowMatcher {
  readonly #program: Program;
  #items: Item[];

  constructor(program: Program) {
    this.#program = program;
    this.#items = this.#close([[program.starts[0]!]]);
  }

  get accepting(): boolean {
    return this.#items.some(([state, ...returns]) => this.#program.finals[state] === 1 && returns.length === 0);
  }

  legalBytes(): number[] {
    return Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => this.#after(byte).length > 0);
  }

  advance(byte: number): void {
    this.#items = this.#close(this.#after(byte));
  }

  #after(byte: number): Item[] {
    const { classes, byteOffsets, byteEdges } = this.#program;
    const items: Item[] = [];
    for (const [state, ...returns] of this.#items) {
      for (let edge = byteOffsets[state]!; edge < byteOffsets[state + 1]!; edge += 2) {
        const [low, high] = [byteEdges[edge]! & 0xff, byteEdges[edge]! >> 8];
        if (classes[byte]! >= low && classes[byte]! <= high) items.push([byteEdges[edge + 1]!, ...returns]);
      }
    }
    return items;
  }

  #close(kernel: readonly Item[]): Item[] {
    const { finals, starts, epsilonOffsets, epsilonEdges, callOffsets, callEdges } = this.#program;
    const found = new Map(kernel.map((item) => [item.join(), item]));
    const add = (...item: Item): void => {
      if (!found.has(item.join())) found.set(item.join(), item);
    };
    for (const [state, ...returns] of found.values()) {
      for (let i = epsilonOffsets[state]!; i < epsilonOffsets[state + 1]!; i++) add(epsilonEdges[i]!, ...returns);
      for (let i = callOffsets[state]!; i < callOffsets[state + 1]!; i += 2) {
        add(starts[callEdges[i]!]!, callEdges[i + 1]!, ...returns);
      }
      if (finals[state] && returns.length > 0) add(returns[0]!, ...returns.slice(1));
    }
    return [...found.values()];
  }
}

const json = { compact: false, closedObjects: false, whitespacePattern: null };
const tree = { type: "object", properties: { v: { type: "number" }, l: { $ref: "#" }, r: { $ref: "#" } } };
const named = (count: number): JsonValue => ({
  type: "object",
  properties: Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, { enum: [i, "x", null] }])),
  required: ["p1"],
});
const shapes: readonly OutputShape[] = [
  { kind: "json_schema", schema: tree, json },
  { kind: "json_schema", schema: named(12), json },
  { kind: "json_schema", schema: { anyOf: [tree, named(3), { type: "array", items: named(2) }] }, json },
  { kind: "json_schema", schema: { type: "string", maxLength: 6, format: "email" }, json },
  { kind: "json_schema", schema: { type: "object", additionalProperties: { type: "string", minLength: 2 } }, json },
  { kind: "regex", pattern: "(a|ab)(c|bcd)*(é|[a-c]{2,5})?" },
  { kind: "grammar", source: 'root ::= "(" root ")" | list\nlist ::= [ab] ("," list)?' },
  { kind: "grammar", source: 'root ::= a b a\na ::= "x" | ""\nb ::= a "y" b | a' },
];

test("the matcher follows exactly what the program allows", () => {
  fc.assert(
    fc.property(fc.constantFrom(...shapes), fc.infiniteStream(fc.nat()), (shape, choices) => {
      const program = compileConstraint({ shape, reasoning: null });
      const matcher = new Matcher(program);
      const judge = new SlowMatcher(program);
      let at = matcher.start();
      for (let step = 0; step < 40; step++) {
        const legal = judge.legalBytes();
        const found = Array.from(program.classes.keys()).filter(
          (byte) => matcher.advance(at, program.classes[byte]!) !== null,
        );
        expect(found).toEqual(legal);
        expect(at.accepting).toBe(judge.accepting);
        if (legal.length === 0) break;
        const byte = legal[choices.next().value! % legal.length]!;
        at = matcher.advance(at, program.classes[byte]!)!;
        judge.advance(byte);
      }
    }),
    { numRuns: 60 },
  );
});

test("forgetting in the middle of a text changes nothing", () => {
  const program = compileConstraint({ shape: { kind: "json_schema", schema: tree, json }, reasoning: null });
  const matcher = new Matcher(program);
  let at = matcher.start();
  for (const byte of Buffer.from('{"v": 1, "l": {"r": {}}, "r": {}}')) {
    matcher.forget();
    at = matcher.advance(at, program.classes[byte]!)!;
    expect(at).not.toBeNull();
  }
  expect(at.accepting).toBe(true);
});
