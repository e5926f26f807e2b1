// The rules of a program as deterministic automata, made on demand. A state set holds the states that are possible at
// once inside one rule call, closed under links. Sets are interned and remember where each byte leads, so all callers
// of a rule share that work. Calls and returns are left to stack-graph.ts.

import type { Program } from "../automaton/program.ts";
import { type ByteRange, utf8Ranges } from "../code-points.ts";
import { LINE_END_POINTS, LINE_ENDS, NON_ASCII, SET_WORDS } from "./trie-contents.ts";

/** Byte sequences of the line ends beyond ASCII, and of all other characters there. */
const [LINE, PARAGRAPH] = LINE_END_POINTS;
const LINE_END_BYTES = utf8Ranges(LINE, PARAGRAPH);
const NON_ASCII_BYTES = [
  ...utf8Ranges(0x80, LINE - 1),
  ...utf8Ranges(PARAGRAPH + 1, 0xd7ff),
  ...utf8Ranges(0xe000, 0x10ffff),
];
/** States that fewer ASCII characters leave are not worth analysing. */
const WIDE = 26;

/** Characters that lead from a set to the same place, as a set in the sense of trie-contents.ts. */
export interface Group {
  /** null = they are not legal. */
  readonly target: StateSet | null;
  /** The byte class of one of the characters. */
  readonly byteClass: number;
  readonly words: Int32Array;
  /** How many of them are ASCII. */
  characters: number;
}

export class StateSet {
  readonly id: number;
  /** The states before closing, ascending. They determine everything else. */
  readonly kernel: readonly number[];
  /** The states that consume a byte. */
  readonly states: readonly number[];
  /** Pairs rule, return state. */
  readonly calls: readonly number[];
  /** The rule may end here. */
  readonly final: boolean;
  /** At most so many ASCII characters are legal. */
  readonly breadth: number;
  /** Per byte class; null = not legal. Empty until asked for, and if a single edge leaves the set. */
  next: readonly (StateSet | null)[] = [];
  /** What follows is only known once these are asked for. */
  groups: ReadonlyMap<StateSet | null, Group> | null = null;
  wide: readonly StateSet[] | null = null;
  maskLike: StateSet | null = null;

  constructor(id: number, kernel: readonly number[], closed: Pick<StateSet, "states" | "calls" | "final" | "breadth">) {
    this.id = id;
    this.kernel = kernel;
    this.states = closed.states;
    this.calls = closed.calls;
    this.final = closed.final;
    this.breadth = closed.breadth;
  }

  /** Neither a call nor a return is possible before the next byte. */
  get settled(): boolean {
    return !this.final && this.calls.length === 0;
  }
}

export class StateSets {
  readonly #program: Program;
  readonly #spend: (work: number) => void;
  readonly #single = new Map<number, StateSet>();
  readonly #several = new Map<string, StateSet>();
  readonly #unions = new Map<StateSet, Map<StateSet, StateSet>>();
  /** Runs of ASCII characters of one class. */
  readonly #ascii: readonly Group[];
  /** Per class: the ASCII characters of lower classes. */
  readonly #asciiBefore: Int32Array;
  #nextId = 0;

  constructor(program: Program, spend: (work: number) => void) {
    this.#program = program;
    this.#spend = spend;
    const ascii: Group[] = [];
    for (let byte = 0; byte < NON_ASCII; byte++) {
      const byteClass = program.classes[byte]!;
      if (ascii.at(-1)?.byteClass !== byteClass) {
        ascii.push({ target: null, byteClass, words: new Int32Array(SET_WORDS), characters: 0 });
      }
      const group = ascii.at(-1)!;
      group.words[byte >> 5]! |= 1 << (byte & 31);
      group.characters++;
    }
    this.#ascii = ascii;
    this.#asciiBefore = new Int32Array(program.classCount + 1).fill(NON_ASCII);
    for (let byte = NON_ASCII - 1; byte >= 0; byte--) this.#asciiBefore[program.classes[byte]!] = byte;
  }

  get size(): number {
    return this.#single.size + this.#several.size;
  }

  forget(): void {
    this.#single.clear();
    this.#several.clear();
    this.#unions.clear();
  }

  single(state: number): StateSet {
    let set = this.#single.get(state);
    if (set === undefined) {
      set = this.#make([state]);
      this.#single.set(state, set);
    }
    return set;
  }

  union(a: StateSet, b: StateSet): StateSet {
    let unions = this.#unions.get(a);
    if (unions === undefined) {
      unions = new Map();
      this.#unions.set(a, unions);
    }
    let union = unions.get(b);
    if (union === undefined) {
      const both = this.#of([...a.kernel, ...b.kernel]);
      union = both.kernel.length === a.kernel.length ? a : both;
      unions.set(b, union);
    }
    return union;
  }

  /** Where a byte leads, before closing; null = it is not legal. */
  next(set: StateSet, byteClass: number): StateSet | null {
    if (set.next.length > 0) return set.next[byteClass]!;
    const { byteOffsets, byteEdges } = this.#program;
    const edge = byteOffsets[set.states[0] ?? 0]!;
    if (set.states.length === 1 && byteOffsets[set.states[0]! + 1] === edge + 2) {
      const range = byteEdges[edge]!;
      return byteClass >= (range & 0xff) && byteClass <= range >> 8 ? this.single(byteEdges[edge + 1]!) : null;
    }
    set.next = this.#row(set);
    return set.next[byteClass]!;
  }

  /** A set with the same masks, often the set itself. */
  maskLike(set: StateSet): StateSet {
    const { maskLike } = this.#program;
    set.maskLike ??= set.kernel.every((state) => maskLike[state] === state)
      ? set
      : this.#of(set.kernel.map((state) => maskLike[state]!));
    return set.maskLike;
  }

  /**
   * All characters, grouped by where they lead. Those beyond ASCII are in a group only if they all lead there, with or
   * without the line ends among them.
   */
  groups(set: StateSet): ReadonlyMap<StateSet | null, Group> {
    if (set.groups !== null) return set.groups;
    const groups = new Map<StateSet | null, Group>();
    for (const { byteClass, words, characters } of this.#ascii) {
      const target = this.next(set, byteClass);
      const group = groups.get(target);
      if (group === undefined) groups.set(target, { target, byteClass, words: words.slice(), characters });
      else {
        for (let i = 0; i < SET_WORDS; i++) group.words[i]! |= words[i]!;
        group.characters += characters;
      }
    }
    const beyond = this.#alongAll(set, NON_ASCII_BYTES);
    const group = beyond === undefined ? undefined : groups.get(beyond);
    if (group !== undefined) {
      group.words[NON_ASCII >> 5]! |= 1 << (NON_ASCII & 31);
      if (this.#alongAll(set, LINE_END_BYTES) === beyond) group.words[LINE_ENDS >> 5]! |= 1 << (LINE_ENDS & 31);
    }
    set.groups = groups;
    return groups;
  }

  /** The states of the set that many characters leave, each alone. */
  wide(set: StateSet): readonly StateSet[] {
    set.wide ??=
      set.breadth < WIDE ? [] : set.states.map((state) => this.single(state)).filter(({ breadth }) => breadth >= WIDE);
    return set.wide;
  }

  /** Where all of these byte sequences lead; undefined = to different places. */
  #alongAll(set: StateSet, sequences: readonly (readonly ByteRange[])[]): StateSet | null | undefined {
    let found: StateSet | null | undefined;
    for (const ranges of sequences) {
      const end = this.#along(set, ranges);
      if (end === undefined || (found !== undefined && end !== found)) return undefined;
      found = end;
    }
    return found;
  }

  #along(start: StateSet, ranges: readonly ByteRange[]): StateSet | null | undefined {
    const { classes } = this.#program;
    let at: StateSet | null = start;
    for (const [low, high] of ranges) {
      if (at === null || (at !== start && !at.settled)) return undefined;
      const next: StateSet | null = this.next(at, classes[low]!);
      for (let byteClass = classes[low]! + 1; byteClass <= classes[high]!; byteClass++) {
        if (this.next(at, byteClass) !== next) return undefined;
      }
      if (next === null && at === start) return null;
      at = next;
    }
    return at ?? undefined;
  }

  #row(set: StateSet): (StateSet | null)[] {
    const { byteOffsets, byteEdges, classCount } = this.#program;
    const targets = new Int32Array(classCount).fill(-1);
    /** Where a class leads to several states. */
    const several = new Map<number, number[]>();
    for (const state of set.states) {
      const end = byteOffsets[state + 1]!;
      this.#spend(1 + ((end - byteOffsets[state]!) >> 4));
      for (let edge = byteOffsets[state]!; edge < end; edge += 2) {
        const target = byteEdges[edge + 1]!;
        const last = byteEdges[edge]! >> 8;
        for (let byteClass = byteEdges[edge]! & 0xff; byteClass <= last; byteClass++) {
          if (targets[byteClass] === -1) targets[byteClass] = target;
          else if (targets[byteClass] !== target) {
            const more = several.get(byteClass);
            if (more) more.push(target);
            else several.set(byteClass, [targets[byteClass]!, target]);
          }
        }
      }
    }
    // Neighbouring classes often lead to the same states.
    let last: { states: readonly number[]; set: StateSet } | null = null;
    return Array.from(targets, (target, byteClass) => {
      if (target === -1) return null;
      const more = several.get(byteClass);
      if (more === undefined) return this.single(target);
      if (last?.states.length !== more.length || !more.every((state, i) => state === last!.states[i])) {
        last = { states: more, set: this.#of(more) };
      }
      return last!.set;
    });
  }

  #of(states: readonly number[]): StateSet {
    const kernel = Int32Array.from(new Set(states)).sort();
    if (kernel.length === 1) return this.single(kernel[0]!);
    const key = kernel.join();
    let set = this.#several.get(key);
    if (set === undefined) {
      set = this.#make(Array.from(kernel));
      this.#several.set(key, set);
    }
    return set;
  }

  #make(kernel: readonly number[]): StateSet {
    const { epsilonOffsets, epsilonEdges, callOffsets, callEdges, byteOffsets, byteEdges, finals } = this.#program;
    const closed = new Set(kernel);
    const states: number[] = [];
    const calls: number[] = [];
    let final = false;
    let breadth = 0;
    for (const state of closed) {
      if (byteOffsets[state] !== byteOffsets[state + 1]) states.push(state);
      if (finals[state]) final = true;
      for (let i = callOffsets[state]!; i < callOffsets[state + 1]!; i++) calls.push(callEdges[i]!);
      for (let i = epsilonOffsets[state]!; i < epsilonOffsets[state + 1]!; i++) closed.add(epsilonEdges[i]!);
      for (let edge = byteOffsets[state]!; edge < byteOffsets[state + 1]!; edge += 2) {
        breadth += this.#asciiBefore[(byteEdges[edge]! >> 8) + 1]! - this.#asciiBefore[byteEdges[edge]! & 0xff]!;
      }
      this.#spend(1);
    }
    return new StateSet(this.#nextId++, kernel, { states, calls, final, breadth });
  }
}
