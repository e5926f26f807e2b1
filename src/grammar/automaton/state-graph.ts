// A nondeterministic automaton over bytes, with calls between rules, under construction. Its size is limited, so a hostile
// constraint causes an error instead of exhausting memory.

import { type CodePointSet, ESCAPED_IN_JSON, intersectSets, subtractSets } from "../code-points.ts";
import { GrammarError } from "../grammar-error.ts";
import { type ByteRange, utf8Ranges } from "./utf8.ts";

const MAX_STATES = 400_000;
const MAX_EDGES = 1_500_000;

export interface GraphState {
  /** Triples low byte, high byte, target. */
  readonly bytes: number[];
  readonly epsilon: number[];
  /** Pairs rule, return state. */
  readonly calls: number[];
  final: boolean;
  /** A state with the same next-token mask (see expression-compiler.ts), or the state itself. */
  maskLike: number;
  /** Entered by a bracket or comma of an array whose items must differ. */
  marked: boolean;
}

export class StateGraph {
  readonly states: GraphState[] = [];
  #edges = 0;

  state(): number {
    if (this.states.length >= MAX_STATES) throw tooLarge();
    const id = this.states.length;
    this.states.push({ bytes: [], epsilon: [], calls: [], final: false, maskLike: id, marked: false });
    return id;
  }

  epsilon(from: number, to: number): void {
    this.#count();
    this.states[from]!.epsilon.push(to);
  }

  call(from: number, rule: number, returnTo: number): void {
    this.#count();
    this.states[from]!.calls.push(rule, returnTo);
  }

  byteRange(from: number, [low, high]: ByteRange, to: number): void {
    this.#count();
    this.states[from]!.bytes.push(low, high, to);
  }

  /** One character of the set, in UTF-8. Equal byte tails share their states. */
  characters(from: number, set: CodePointSet, to: number): void {
    const tails = new Map<string, number>();
    for (const [low, high] of set) {
      for (const path of utf8Ranges(low, high)) {
        let target = to;
        let key = "";
        for (let i = path.length - 1; i > 0; i--) {
          const [first, last] = path[i]!;
          key = `${first}-${last}.${key}`;
          let state = tails.get(key);
          if (state === undefined) {
            state = this.state();
            this.byteRange(state, path[i]!, target);
            tails.set(key, state);
          }
          target = state;
        }
        this.byteRange(from, path[0]!, target);
      }
    }
  }

  /** One character of the set as it is written inside a JSON string: raw where allowed, else its shortest escape. */
  jsonCharacters(from: number, set: CodePointSet, to: number): void {
    this.characters(from, subtractSets(set, ESCAPED_IN_JSON), to);
    const escapes: string[] = [];
    for (const [low, high] of intersectSets(set, ESCAPED_IN_JSON)) {
      for (let point = low; point <= high; point++) {
        escapes.push(JSON.stringify(String.fromCodePoint(point)).slice(1, -1));
      }
    }
    if (escapes.length > 0) this.texts(from, escapes, to);
  }

  /** Any one of the texts; common beginnings share their states. */
  texts(from: number, values: readonly string[], to: number): void {
    const encoder = new TextEncoder();
    const children = new Map<number, number>();
    for (const value of values) {
      const bytes = encoder.encode(value);
      let at = from;
      for (const byte of bytes) {
        // The tree's own edges are found by (state, byte); `from` may carry other edges that are not part of it.
        const key = at * 256 + byte;
        let next = children.get(key);
        if (next === undefined) {
          next = this.state();
          this.byteRange(at, [byte, byte], next);
          children.set(key, next);
        }
        at = next;
      }
      this.epsilon(at, to);
    }
  }

  #count(): void {
    if (++this.#edges > MAX_EDGES) throw tooLarge();
  }
}

function tooLarge(): GrammarError {
  return new GrammarError(
    `the constraint is too large: it needs more than ${MAX_STATES} states; use smaller repetition counts, lengths or fewer alternatives`,
  );
}
