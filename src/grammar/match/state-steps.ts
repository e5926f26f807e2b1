// Finds where the states of a program lead, ignoring stacks and closure. That is enough to see that two characters lead to
// the same place, and cheaper than running a matcher.

import type { Program } from "../automaton/program.ts";
import { utf8Ranges } from "../automaton/utf8.ts";
import { NON_ASCII, SET_WORDS } from "./trie-contents.ts";

/** No edge. */
const NOWHERE = -1;
/** Only some of the characters have an edge, or their edges lead to different places. */
const MIXED = -2;
/** Byte sequences of all characters beyond ASCII. */
const NON_ASCII_BYTES = [...utf8Ranges(0x80, 0xd7ff), ...utf8Ranges(0xe000, 0x10ffff)];

/** Characters that lead to the same places, as a set in the sense of trie-contents.ts. */
export interface Group {
  /** The byte class of one of the characters. */
  readonly byteClass: number;
  readonly words: Int32Array;
  /** How many of them are ASCII. */
  characters: number;
}

/** States with edges for fewer ASCII characters than this are not worth analysing. */
const WIDE = 26;

export class StateSteps {
  readonly #program: Program;
  readonly #rows = new Map<number, Int32Array>();
  /** Keyed by the states. */
  readonly #groups = new Map<string, readonly Group[]>();
  /** The ASCII characters of each class. */
  readonly #ascii: readonly Group[];
  /** Sets of several target states get numbers above all states. */
  readonly #sets = new Map<string, number>();

  constructor(program: Program) {
    this.#program = program;
    const ascii: Group[] = [];
    for (let byte = 0; byte < NON_ASCII; byte++) {
      const byteClass = program.classes[byte]!;
      if (ascii.at(-1)?.byteClass !== byteClass) {
        ascii.push({ byteClass, words: new Int32Array(SET_WORDS), characters: 0 });
      }
      const group = ascii.at(-1)!;
      group.words[byte >> 5]! |= 1 << (byte & 31);
      group.characters++;
    }
    this.#ascii = ascii;
  }

  /** The characters that some of these states can follow, grouped by where they lead. */
  groups(states: readonly number[]): readonly Group[] {
    const key = states.join();
    let groups = this.#groups.get(key);
    if (groups === undefined) {
      groups = this.#findGroups(states.map((state) => this.#of(state)));
      this.#groups.set(key, groups);
    }
    return groups;
  }

  wide(state: number): boolean {
    return this.groups([state]).reduce((sum, { characters }) => sum + characters, 0) >= WIDE;
  }

  #findGroups(rows: readonly Int32Array[]): readonly Group[] {
    const groups = new Map<string, Group>();
    for (const { byteClass, words, characters } of this.#ascii) {
      if (rows.every((row) => row[byteClass] === NOWHERE)) continue;
      const key = rows.length === 1 ? String(rows[0]![byteClass]) : rows.map((row) => row[byteClass]).join();
      const group = groups.get(key);
      if (group === undefined) groups.set(key, { byteClass, words: words.slice(), characters });
      else {
        for (let i = 0; i < SET_WORDS; i++) group.words[i]! |= words[i]!;
        group.characters += characters;
      }
    }
    const beyond = rows.map((row) => row[this.#program.classCount]!);
    const group = beyond.includes(MIXED) ? undefined : groups.get(beyond.join());
    if (group) group.words[NON_ASCII >> 5]! |= 1 << (NON_ASCII & 31);
    return [...groups.values()];
  }

  /** Per byte class: the target, a number for several targets, or NOWHERE. Last, the same for all of non-ASCII. */
  #of(state: number): Int32Array {
    let row = this.#rows.get(state);
    if (row === undefined) {
      row = this.#row(state);
      this.#rows.set(state, row);
    }
    return row;
  }

  #row(state: number): Int32Array {
    const { byteOffsets, byteEdges, classCount } = this.#program;
    const row = new Int32Array(classCount + 1).fill(NOWHERE);
    const several = new Set<number>();
    for (let edge = byteOffsets[state]!; edge < byteOffsets[state + 1]!; edge += 2) {
      const range = byteEdges[edge]!;
      for (let byteClass = range & 0xff; byteClass <= range >> 8; byteClass++) {
        if (row[byteClass] !== NOWHERE) several.add(byteClass);
        row[byteClass] = byteEdges[edge + 1]!;
      }
    }
    for (const byteClass of several) row[byteClass] = this.#setNumber(this.#targets([state], byteClass));
    row[classCount] = this.#nonAscii(state);
    return row;
  }

  #nonAscii(state: number): number {
    let found: number | null = null;
    for (const ranges of NON_ASCII_BYTES) {
      const end = this.#along([state], ranges);
      if (end === MIXED || (found !== null && end !== found)) return MIXED;
      found = end;
    }
    return found!;
  }

  /** Where every byte sequence of the ranges leads. */
  #along(start: readonly number[], ranges: readonly (readonly [low: number, high: number])[]): number {
    const { classes, epsilonOffsets, callOffsets } = this.#program;
    let states = start;
    for (const [level, [low, high]] of ranges.entries()) {
      const linked = (state: number) =>
        epsilonOffsets[state] !== epsilonOffsets[state + 1] || callOffsets[state] !== callOffsets[state + 1];
      if (level > 0 && states.some(linked)) return MIXED;
      const next = this.#targets(states, classes[low]!);
      const key = next.join();
      for (let byteClass = classes[low]! + 1; byteClass <= classes[high]!; byteClass++) {
        if (this.#targets(states, byteClass).join() !== key) return MIXED;
      }
      if (next.length === 0) return level === 0 ? NOWHERE : MIXED;
      states = next;
    }
    return this.#setNumber(states);
  }

  /** Ascending. */
  #targets(states: readonly number[], byteClass: number): number[] {
    const { byteOffsets, byteEdges } = this.#program;
    const targets = new Set<number>();
    for (const state of states) {
      for (let edge = byteOffsets[state]!; edge < byteOffsets[state + 1]!; edge += 2) {
        const range = byteEdges[edge]!;
        if (byteClass >= (range & 0xff) && byteClass <= range >> 8) targets.add(byteEdges[edge + 1]!);
      }
    }
    return [...targets].sort((a, b) => a - b);
  }

  #setNumber(states: readonly number[]): number {
    if (states.length === 1) return states[0]!;
    const key = states.join();
    let number = this.#sets.get(key);
    if (number === undefined) {
      number = this.#program.finals.length + this.#sets.size;
      this.#sets.set(key, number);
    }
    return number;
  }
}
