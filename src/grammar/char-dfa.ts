// Deterministic automata over characters, for the few constraints that need set algebra on texts: intersections
// (a pattern and a length) and differences (any key but these). A constraint that needs too many states is refused.

import {
  ANY_CODE_POINT,
  type CodePointRange,
  type CodePointSet,
  codePoints,
  includesPoint,
  intersectSets,
  partition,
  subtractSets,
  unionSets,
} from "./code-points.ts";
import type { CharDfa, CharEdge, Expression } from "./expression.ts";
import { GrammarError } from "./grammar-error.ts";

const MAX_STATES = 20_000;

interface NfaState {
  readonly edges: CharEdge[];
  readonly epsilon: number[];
}

/** Takes an expression without rules. The error for one that grows too large calls it `subject`. */
export function determinise(expression: Expression, subject: string): CharDfa {
  const nfa: NfaState[] = [];
  const state = (): number => {
    if (nfa.length > 10 * MAX_STATES) throw tooLarge(subject);
    nfa.push({ edges: [], epsilon: [] });
    return nfa.length - 1;
  };
  const start = state();
  const end = state();
  build(expression, start, end, nfa, state);
  const alphabet = new Alphabet(nfa.flatMap(({ edges }) => edges.map((edge) => edge.set)));
  const closures = new Map<string, readonly number[]>();
  const closure = (targets: readonly number[]): readonly number[] => {
    const key = targets.join();
    let members = closures.get(key);
    if (!members) {
      const seen = new Set(targets);
      for (const member of seen) for (const next of nfa[member]!.epsilon) seen.add(next);
      members = [...seen].sort((a, b) => a - b);
      closures.set(key, members);
    }
    return members;
  };
  return explore(
    closure([start]),
    (members) => members.join(),
    (members) => members.includes(end),
    (members) => {
      const targets = new Map<number, Set<number>>();
      for (const member of members) {
        for (const edge of nfa[member]!.edges) {
          for (const letter of alphabet.letters(edge.set)) {
            const known = targets.get(letter);
            if (known) known.add(edge.target);
            else targets.set(letter, new Set([edge.target]));
          }
        }
      }
      const groups = new Map<string, { letters: number[]; target: readonly number[] }>();
      for (const [letter, reached] of targets) {
        const target = [...reached].sort((a, b) => a - b);
        const group = groups.get(target.join());
        if (group) group.letters.push(letter);
        else groups.set(target.join(), { letters: [letter], target });
      }
      return [...groups.values()].map(({ letters, target }) => ({
        set: alphabet.set(letters),
        target: closure(target),
      }));
    },
    subject,
  );
}

/** Code points grouped into letters. An automaton treats all code points of one letter alike. */
class Alphabet {
  readonly #letters = new Map<CodePointSet, readonly number[]>();
  readonly #ranges: CodePointRange[][] = [];
  readonly #sets = new Map<string, CodePointSet>();

  constructor(sets: readonly CodePointSet[]) {
    const different = new Map<string, CodePointSet[]>();
    for (const set of new Set(sets)) different.set(set.join(), [...(different.get(set.join()) ?? []), set]);
    const groups = [...different.values()];
    const members = groups.map((): number[] => []);
    const ids = new Map<string, number>();
    for (const piece of partition(groups.map(([set]) => set!))) {
      const holders = groups.flatMap(([set], index) => (includesPoint(set!, piece[0]) ? [index] : []));
      if (holders.length === 0) continue;
      const key = holders.join();
      let id = ids.get(key);
      if (id === undefined) {
        id = ids.size;
        ids.set(key, id);
        this.#ranges.push([]);
        for (const holder of holders) members[holder]!.push(id);
      }
      this.#ranges[id]!.push(piece);
    }
    for (const [index, group] of groups.entries()) for (const set of group) this.#letters.set(set, members[index]!);
  }

  letters(set: CodePointSet): readonly number[] {
    return this.#letters.get(set)!;
  }

  set(letters: number[]): CodePointSet {
    const key = letters.sort((a, b) => a - b).join();
    let set = this.#sets.get(key);
    if (!set) {
      set = unionSets(...letters.map((letter) => this.#ranges[letter]!));
      this.#sets.set(key, set);
    }
    return set;
  }
}

/** The automaton's texts that are between min and max characters long. */
export function withLength(dfa: CharDfa, min: number, max: number | null, subject: string): CharDfa {
  const cap = max ?? min;
  return explore<readonly [number, number]>(
    [0, 0],
    ([state, length]) => `${state}.${length}`,
    ([state, length]) => dfa.states[state]!.final && length >= min,
    ([state, length]) => {
      if (max !== null && length >= max) return [];
      const next = Math.min(length + 1, cap);
      return dfa.states[state]!.edges.map(({ set, target }) => ({ set, target: [target, next] as const }));
    },
    subject,
  );
}

export function intersectDfas(a: CharDfa, b: CharDfa, subject: string): CharDfa {
  return explore<readonly [number, number]>(
    [0, 0],
    ([x, y]) => `${x}.${y}`,
    ([x, y]) => a.states[x]!.final && b.states[y]!.final,
    ([x, y]) =>
      a.states[x]!.edges.flatMap((left) =>
        b.states[y]!.edges.flatMap((right) => {
          const set = intersectSets(left.set, right.set);
          return set.length === 0 ? [] : [{ set, target: [left.target, right.target] as const }];
        }),
      ),
    subject,
  );
}

/** Texts that the automaton does not accept. */
export function complementDfa(dfa: CharDfa): CharDfa {
  const anything = dfa.states.length;
  const states = dfa.states.map(({ final, edges }) => {
    const rest = subtractSets(ANY_CODE_POINT, unionSets(...edges.map((edge) => edge.set)));
    return { final: !final, edges: rest.length === 0 ? edges : [...edges, { set: rest, target: anything }] };
  });
  return { states: [...states, { final: true, edges: [{ set: ANY_CODE_POINT, target: anything }] }] };
}

/** Every text except these. */
export function otherThan(values: readonly string[]): CharDfa {
  const nodes: { children: Map<number, number>; listed: boolean }[] = [{ children: new Map(), listed: false }];
  for (const value of values) {
    let at = 0;
    for (const char of value) {
      const point = char.codePointAt(0)!;
      let next = nodes[at]!.children.get(point);
      if (next === undefined) {
        next = nodes.length;
        nodes.push({ children: new Map(), listed: false });
        nodes[at]!.children.set(point, next);
      }
      at = next;
    }
    nodes[at]!.listed = true;
  }
  const anything = nodes.length;
  const states = nodes.map(({ children, listed }) => {
    const edges: CharEdge[] = [...children].map(([point, target]) => ({ set: codePoints([[point, point]]), target }));
    const rest = subtractSets(ANY_CODE_POINT, unionSets(...edges.map((edge) => edge.set)));
    return { final: !listed, edges: [...edges, { set: rest, target: anything }] };
  });
  return { states: [...states, { final: true, edges: [{ set: ANY_CODE_POINT, target: anything }] }] };
}

/** Texts whose last code point is `kind` modulo `kinds`. The empty text has kind 0. */
export function lastCharacter(kind: number, kinds: number): CharDfa {
  const chosen = codePoints(
    Array.from({ length: Math.ceil(0x250 / kinds) }, (_, row) => [row * kinds + kind, row * kinds + kind] as const),
  );
  // All characters beyond the Latin letters have kind 0.
  const matching = kind === 0 ? unionSets(chosen, codePoints([[0x250 + kinds, 0x10ffff]])) : chosen;
  const edges = [
    { set: matching, target: 1 },
    { set: subtractSets(ANY_CODE_POINT, matching), target: 2 },
  ];
  return { states: [kind === 0, true, false].map((final) => ({ final, edges })) };
}

function explore<S>(
  start: S,
  key: (state: S) => string,
  final: (state: S) => boolean,
  edges: (state: S) => { set: CodePointSet; target: S }[],
  subject: string,
): CharDfa {
  const ids = new Map<string, number>([[key(start), 0]]);
  const queue: S[] = [start];
  const states: { final: boolean; edges: CharEdge[] }[] = [];
  for (const state of queue) {
    const out = edges(state).map(({ set, target }) => {
      const name = key(target);
      let id = ids.get(name);
      if (id === undefined) {
        id = queue.length;
        if (id >= MAX_STATES) throw tooLarge(subject);
        ids.set(name, id);
        queue.push(target);
      }
      return { set, target: id };
    });
    states.push({ final: final(state), edges: out });
  }
  return { states };
}

function build(expression: Expression, from: number, to: number, nfa: NfaState[], state: () => number): void {
  switch (expression.kind) {
    case "set":
      nfa[from]!.edges.push({ set: expression.set, target: to });
      return;
    case "texts":
      for (const value of expression.texts) {
        let at = from;
        for (const char of value) {
          const next = state();
          nfa[at]!.edges.push({ set: codePoints([[char.codePointAt(0)!, char.codePointAt(0)!]]), target: next });
          at = next;
        }
        nfa[at]!.epsilon.push(to);
      }
      return;
    case "sequence": {
      let at = from;
      for (const part of expression.parts) {
        const next = state();
        build(part, at, next, nfa, state);
        at = next;
      }
      nfa[at]!.epsilon.push(to);
      return;
    }
    case "choice":
      for (const option of expression.options) build(option, from, to, nfa, state);
      return;
    case "repeat": {
      let at = state();
      nfa[from]!.epsilon.push(at);
      for (let count = 0; count < (expression.max ?? expression.min); count++) {
        if (count >= expression.min) nfa[at]!.epsilon.push(to);
        const next = state();
        build(expression.body, at, next, nfa, state);
        at = next;
      }
      nfa[at]!.epsilon.push(to);
      if (expression.max === null) {
        const again = state();
        build(expression.body, at, again, nfa, state);
        nfa[again]!.epsilon.push(at);
      }
      return;
    }
    case "dfa": {
      const ids = expression.dfa.states.map(state);
      nfa[from]!.epsilon.push(ids[0]!);
      for (const [index, { final, edges }] of expression.dfa.states.entries()) {
        const { edges: out, epsilon } = nfa[ids[index]!]!;
        for (const { set, target } of edges) out.push({ set, target: ids[target]! });
        if (final) epsilon.push(to);
      }
      return;
    }
    case "rule":
    case "graph":
    case "mark":
    case "dispatch":
      throw new Error(`${expression.kind} cannot be determinised`);
    default:
      expression satisfies never;
  }
}

function tooLarge(subject: string): GrammarError {
  return new GrammarError(`${subject} is too complex: it needs more than ${MAX_STATES} states`);
}
