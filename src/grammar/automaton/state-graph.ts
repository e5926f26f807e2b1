// A nondeterministic automaton over bytes, with calls between rules, under construction. Its size is limited, so a hostile
// constraint causes an error instead of exhausting memory.

import { type CodePointSet, ESCAPED_IN_JSON, intersectSets, subtractSets, utf8Ranges } from "../code-points.ts";
import { spendEffort } from "../compile-effort.ts";
import { GrammarError } from "../grammar-error.ts";

const MAX_STATES = 400_000;
const MAX_EDGES = 1_500_000;
const BACKSLASH = 0x5c;

/** How the characters of a set are written. */
interface Spelling {
  /** States behind first bytes, each as low byte, high byte, index of the next such state; -1 = the target. */
  readonly tails: readonly number[];
  /** First bytes, each as low byte, high byte, index of the state behind it; -1 = the target. */
  readonly heads: readonly number[];
  /** Those that are written with a backslash in front. */
  readonly escapes: readonly string[];
  /** By target: triples low byte, high byte, state, where the first byte leads on the way there. */
  readonly ways: Map<number, readonly number[]>;
}

/** The edges of state s: values[offsets[s] .. offsets[s + 1]]. */
export interface Rows {
  readonly offsets: Int32Array;
  readonly values: Int32Array;
}

/** What leaves a state. */
export interface OutgoingEdges {
  /** Triples low byte, high byte, target. */
  readonly bytes: readonly number[];
  /** Pairs rule, return state. */
  readonly calls: readonly number[];
  readonly final: boolean;
}

export class StateGraph {
  /** States are numbered from 0. */
  size = 0;
  /** Edges, each as from, low byte, high byte, target. */
  readonly byteEdges: number[] = [];
  /** From, target. */
  readonly epsilonEdges: number[] = [];
  /** From, rule, return state. */
  readonly callEdges: number[] = [];
  readonly finals = new Set<number>();
  /** A state with the same next-token mask (see expression-compiler.ts), for states that have one. */
  readonly maskLike = new Map<number, number>();
  /** Entered by a bracket or comma of an array whose items must differ. */
  readonly marked = new Set<number>();
  readonly #plain = new Map<CodePointSet, Spelling>();
  readonly #json = new Map<CodePointSet, Spelling>();
  /** By content. */
  readonly #spellings = new Map<string, Spelling>();
  #edges = 0;

  state(): number {
    if (this.size >= MAX_STATES) throw tooLarge();
    return this.size++;
  }

  epsilon(from: number, to: number): void {
    this.#count();
    this.epsilonEdges.push(from, to);
  }

  call(from: number, rule: number, returnTo: number): void {
    this.#count();
    this.callEdges.push(from, rule, returnTo);
  }

  byteRange(from: number, low: number, high: number, to: number): void {
    this.#count();
    this.byteEdges.push(from, low, high, to);
  }

  /** One character of the set, in UTF-8. */
  characters(from: number, set: CodePointSet, to: number): void {
    this.#write(from, this.#plain.get(set) ?? this.#spell(this.#plain, set, false), to);
  }

  /** One character of the set as it is written inside a JSON string: raw where allowed, else its shortest escape. */
  jsonCharacters(from: number, set: CodePointSet, to: number): void {
    this.#write(from, this.#json.get(set) ?? this.#spell(this.#json, set, true), to);
  }

  /** Gives states these edges in place of all they had, links included. */
  replaceEdges(replaced: ReadonlyMap<number, OutgoingEdges>): void {
    if (replaced.size === 0) return;
    keepOthers(this.byteEdges, 4, replaced);
    keepOthers(this.epsilonEdges, 2, replaced);
    keepOthers(this.callEdges, 3, replaced);
    for (const [state, { bytes, calls, final }] of replaced) {
      for (let i = 0; i < bytes.length; i += 3) this.byteEdges.push(state, bytes[i]!, bytes[i + 1]!, bytes[i + 2]!);
      for (let i = 0; i < calls.length; i += 2) this.callEdges.push(state, calls[i]!, calls[i + 1]!);
      if (final) this.finals.add(state);
    }
  }

  #spell(known: Map<CodePointSet, Spelling>, set: CodePointSet, json: boolean): Spelling {
    const key = `${json} ${set.join()}`;
    let spelling = this.#spellings.get(key);
    if (spelling === undefined) {
      const escapes = json
        ? intersectSets(set, ESCAPED_IN_JSON).flatMap(([low, high]) =>
            Array.from({ length: high - low + 1 }, (_, i) =>
              JSON.stringify(String.fromCodePoint(low + i)).slice(2, -1),
            ),
          )
        : [];
      const raw = json ? subtractSets(set, ESCAPED_IN_JSON) : set;
      spelling = { ...bytesOf(raw), escapes, ways: new Map() };
      this.#spellings.set(key, spelling);
    }
    known.set(set, spelling);
    return spelling;
  }

  /** Any one of the texts; common beginnings share their states. */
  texts(from: number, values: readonly string[], to: number): void {
    const children = new Map<number, number>();
    for (const value of values) {
      let at = from;
      const bytes = utf8(value);
      const alone = values.length === 1 ? bytes.length - 1 : -1;
      for (let i = 0; i < bytes.length; i++) {
        // The tree's own edges are found by (state, byte); `from` may carry other edges that are not part of it.
        const key = at * 256 + bytes[i]!;
        let next = children.get(key);
        if (next === undefined) {
          next = i === alone ? to : this.state();
          this.byteRange(at, bytes[i]!, bytes[i]!, next);
          children.set(key, next);
        }
        at = next;
      }
      if (at !== to) this.epsilon(at, to);
    }
  }

  #write(from: number, spelling: Spelling, to: number): void {
    let ways = spelling.ways.get(to);
    if (ways === undefined) {
      ways = this.#waysTo(to, spelling);
      spelling.ways.set(to, ways);
    }
    for (let i = 0; i < ways.length; i += 3) this.byteRange(from, ways[i]!, ways[i + 1]!, ways[i + 2]!);
  }

  #waysTo(to: number, { tails, heads, escapes }: Spelling): readonly number[] {
    const ways: number[] = [];
    const first = this.size;
    for (let i = 0; i < tails.length; i += 3) this.state();
    const place = (index: number): number => (index === -1 ? to : first + index);
    for (let i = 0; i < tails.length; i += 3) {
      this.byteRange(first + i / 3, tails[i]!, tails[i + 1]!, place(tails[i + 2]!));
    }
    for (let i = 0; i < heads.length; i += 3) ways.push(heads[i]!, heads[i + 1]!, place(heads[i + 2]!));
    if (escapes.length > 0) {
      const escaped = this.state();
      this.texts(escaped, escapes, to);
      ways.push(BACKSLASH, BACKSLASH, escaped);
    }
    return ways;
  }

  #count(): void {
    spendEffort(4);
    if (++this.#edges > MAX_EDGES) throw tooLarge();
  }
}

/** Sorts edges by their first entry, which the rows leave out. */
export function rowsOf(size: number, edges: readonly number[], width: number): Rows {
  const offsets = new Int32Array(size + 1);
  for (let i = 0; i < edges.length; i += width) offsets[edges[i]! + 1]! += width - 1;
  for (let state = 0; state < size; state++) offsets[state + 1]! += offsets[state]!;
  const next = offsets.slice();
  const values = new Int32Array(offsets[size]!);
  for (let i = 0; i < edges.length; i += width) {
    for (let k = 1; k < width; k++) values[next[edges[i]!]!++] = edges[i + k]!;
  }
  return { offsets, values };
}

/** Drops the edges that leave one of these states. */
function keepOthers(edges: number[], width: number, left: ReadonlyMap<number, unknown>): void {
  let end = 0;
  for (let i = 0; i < edges.length; i += width) {
    if (left.has(edges[i]!)) continue;
    for (let k = 0; k < width; k++) edges[end++] = edges[i + k]!;
  }
  edges.length = end;
}

/** Equal byte tails share their states. */
function bytesOf(set: CodePointSet): Pick<Spelling, "tails" | "heads"> {
  const tails: number[] = [];
  const heads: number[] = [];
  /** By bytes and the index of the state behind them. */
  const known = new Map<number, number>();
  for (const [low, high] of set) {
    for (const path of utf8Ranges(low, high)) {
      let target = -1;
      for (let i = path.length - 1; i > 0; i--) {
        const [from, to] = path[i]!;
        const key = ((target + 1) * 256 + from) * 256 + to;
        let tail = known.get(key);
        if (tail === undefined) {
          tail = tails.length / 3;
          tails.push(from, to, target);
          known.set(key, tail);
        }
        target = tail;
      }
      heads.push(...path[0]!, target);
    }
  }
  return { tails, heads };
}

const encoder = new TextEncoder();

/** Most texts are short and ASCII, where an encoder costs more than a loop. */
function utf8(text: string): ArrayLike<number> {
  const bytes: number[] = [];
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) return encoder.encode(text);
    bytes.push(code);
  }
  return bytes;
}

function tooLarge(): GrammarError {
  return new GrammarError(
    `the constraint is too large: it needs more than ${MAX_STATES} states; use smaller repetition counts, lengths or fewer alternatives`,
  );
}
