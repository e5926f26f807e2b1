// Deterministic automata over characters, for the few constraints that need set algebra on texts: intersections
// (a pattern and a length) and differences (any key but these). A constraint that needs too many states is refused.

import {
  ANY_CODE_POINT,
  type CodePointSet,
  codePoints,
  intersectSets,
  subtractSets,
  unionSets,
} from "./code-points.ts";
import { spendEffort } from "./compile-effort.ts";
import type { CharDfa, CharEdge } from "./expression.ts";
import { GrammarError } from "./grammar-error.ts";

export const MAX_STATES = 20_000;

/** The automaton's texts that are between min and max characters long. */
export function withLength(dfa: CharDfa, min: number, max: number | null, subject: string): CharDfa {
  const cap = max ?? min;
  return explore<readonly [number, number]>(
    [0, 0],
    ([state, length]) => state * (cap + 1) + length,
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
  const common = commonSets();
  return explore<readonly [number, number]>(
    [0, 0],
    ([x, y]) => x * b.states.length + y,
    ([x, y]) => a.states[x]!.final && b.states[y]!.final,
    ([x, y]) =>
      a.states[x]!.edges.flatMap((left) =>
        b.states[y]!.edges.flatMap((right) => {
          const set = common(left.set, right.set);
          return set.length === 0 ? [] : [{ set, target: [left.target, right.target] as const }];
        }),
      ),
    subject,
  );
}

/** Intersections. The same two sets always give the same object: automata have many edges and few different sets. */
function commonSets(): (a: CodePointSet, b: CodePointSet) => CodePointSet {
  const known = new Map<CodePointSet, Map<CodePointSet, CodePointSet>>();
  const distinct = new Map<string, CodePointSet>();
  return (a, b) => {
    if (a === b) return a;
    let row = known.get(a);
    if (row === undefined) {
      row = new Map();
      known.set(a, row);
    }
    let common = row.get(b);
    if (common === undefined) {
      const made = intersectSets(a, b);
      const key = made.join();
      common = distinct.get(key) ?? made;
      distinct.set(key, common);
      row.set(b, common);
    }
    return common;
  };
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

/** The automaton whose states are found from `start` on. States with the same key are one state. */
export function explore<S>(
  start: S,
  key: (state: S) => string | number,
  final: (state: S) => boolean,
  edges: (state: S) => { set: CodePointSet; target: S }[],
  subject: string,
): CharDfa {
  const ids = new Map<string | number, number>([[key(start), 0]]);
  const queue: S[] = [start];
  const states: { final: boolean; edges: CharEdge[] }[] = [];
  for (const state of queue) {
    const leaving = edges(state);
    spendEffort(20 + 10 * leaving.length);
    const out = leaving.map(({ set, target }) => {
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

export function tooLarge(subject: string): GrammarError {
  return new GrammarError(`${subject} is too complex: it needs more than ${MAX_STATES} states`);
}
