// Turns an expression over text into a deterministic automaton over characters. Also decides assertions, which hold at
// some places of the text only: anchors and word boundaries.

import { explore, MAX_STATES, tooLarge } from "./char-dfa.ts";
import {
  ANY_CODE_POINT,
  type CodePointRange,
  type CodePointSet,
  codePoints,
  includesPoint,
  partition,
  unionSets,
} from "./code-points.ts";
import { spendEffort } from "./compile-effort.ts";
import type { Assertion, CharDfa, CharEdge, Expression } from "./expression.ts";
import { holds, isBoundary, type Neighbour, neighbourOf, neighbourSets } from "./syntax/character-classes.ts";

interface NfaState {
  readonly edges: CharEdge[];
  readonly epsilon: number[];
  readonly asserted: { readonly assertion: Assertion; readonly target: number }[];
}

/** States after some text. The first three fields say all that assertions ask about that text. */
interface Reached {
  readonly atStart: boolean;
  readonly before: Neighbour;
  readonly members: readonly number[];
}

/** Takes an expression without rules. The error for one that grows too large calls it `subject`. */
export function determinise(expression: Expression, subject: string): CharDfa {
  const nfa = new Nfa(expression, subject);
  const letterSets = nfa.states.flatMap(({ edges }) => edges.map((edge) => edge.set));
  const alphabet = new Alphabet(nfa.bounded ? [...letterSets, ...neighbourSets()] : letterSets);
  /** What may follow: a letter of each kind. Without word boundaries all letters are of one kind. */
  const kinds: readonly Neighbour[] = nfa.bounded ? ["word", "foreign", "other"] : ["other"];
  const kindOf = (letter: number): Neighbour => (nfa.bounded ? neighbourOf(alphabet.point(letter)) : "other");
  return explore<Reached>(
    { atStart: nfa.asserts, before: "other", members: nfa.closure([nfa.start]) },
    ({ atStart, before, members }) => `${atStart} ${before} ${members.join()}`,
    ({ atStart, before, members }) => nfa.closure(members, { atStart, before, after: null }).includes(nfa.end),
    ({ atStart, before, members }) =>
      kinds.flatMap((after) => {
        const targets = new Map<number, Set<number>>();
        for (const member of nfa.closure(members, { atStart, before, after })) {
          for (const edge of nfa.states[member]!.edges) {
            spendEffort(alphabet.letters(edge.set).length);
            for (const letter of alphabet.letters(edge.set)) {
              if (kindOf(letter) !== after) continue;
              const known = targets.get(letter);
              if (known) known.add(edge.target);
              else targets.set(letter, new Set([edge.target]));
            }
          }
        }
        const groups = new Map<readonly number[], number[]>();
        for (const [letter, reached] of targets) {
          const closed = nfa.closure([...reached].sort((a, b) => a - b));
          const group = groups.get(closed);
          if (group) group.push(letter);
          else groups.set(closed, [letter]);
        }
        return [...groups].map(([closed, letters]) => ({
          set: alphabet.set(letters),
          target: { atStart: false, before: after, members: closed },
        }));
      }),
    subject,
  );
}

interface Place {
  readonly atStart: boolean;
  readonly before: Neighbour;
  /** null at the end of the text. */
  readonly after: Neighbour | null;
}

class Nfa {
  readonly states: NfaState[] = [];
  readonly start: number;
  readonly end: number;
  /** Whether it has assertions, and whether some of them are word boundaries. */
  readonly asserts: boolean;
  readonly bounded: boolean;
  readonly #closures = new Map<string, readonly number[]>();
  /** States from which every text is accepted. */
  readonly #universal: readonly number[];
  readonly #subject: string;

  constructor(expression: Expression, subject: string) {
    this.#subject = subject;
    this.start = this.#state();
    this.end = this.#state();
    this.#build(expression, this.start, this.end);
    const assertions = this.states.flatMap(({ asserted }) => asserted);
    this.asserts = assertions.length > 0;
    this.bounded = assertions.some(({ assertion }) => isBoundary(assertion));
    this.#universal = this.#findUniversal();
  }

  /** Everything reachable without a character. Assertions are followed where they hold at `place`. */
  closure(targets: readonly number[], place: Place | null = null): readonly number[] {
    if (place !== null && !this.asserts) return targets;
    const key = place === null ? targets.join() : `${place.atStart} ${place.before} ${place.after} ${targets.join()}`;
    let members = this.#closures.get(key);
    if (!members) {
      const seen = this.#reachable(targets, place);
      spendEffort(5 * seen.size);
      // Once everything is accepted, the other possibilities do not matter.
      const universal = this.#universal.some((state) => seen.has(state));
      members = [...(universal ? this.#reachable([this.#universal[0]!], null) : seen)].sort((a, b) => a - b);
      this.#closures.set(key, members);
    }
    return members;
  }

  #reachable(targets: readonly number[], place: Place | null): Set<number> {
    const seen = new Set(targets);
    for (const member of seen) {
      for (const next of this.states[member]!.epsilon) seen.add(next);
      if (place === null) continue;
      for (const { assertion, target } of this.states[member]!.asserted) {
        if (holds(assertion, place.atStart, place.before, place.after)) seen.add(target);
      }
    }
    return seen;
  }

  #findUniversal(): number[] {
    return this.states.flatMap(({ edges }, state) => {
      const loops = edges.some(
        (edge) => edge.set === ANY_CODE_POINT && this.#reachable([edge.target], null).has(state),
      );
      return loops && this.#reachable([state], null).has(this.end) ? [state] : [];
    });
  }

  #state(): number {
    if (this.states.length > 10 * MAX_STATES) throw tooLarge(this.#subject);
    this.states.push({ edges: [], epsilon: [], asserted: [] });
    return this.states.length - 1;
  }

  #build(expression: Expression, from: number, to: number): void {
    const nfa = this.states;
    switch (expression.kind) {
      case "set":
        nfa[from]!.edges.push({ set: expression.set, target: to });
        return;
      case "texts":
        for (const value of expression.texts) {
          let at = from;
          for (const char of value) {
            const next = this.#state();
            nfa[at]!.edges.push({ set: codePoints([[char.codePointAt(0)!, char.codePointAt(0)!]]), target: next });
            at = next;
          }
          nfa[at]!.epsilon.push(to);
        }
        return;
      case "sequence": {
        let at = from;
        for (const part of expression.parts) {
          const next = this.#state();
          this.#build(part, at, next);
          at = next;
        }
        nfa[at]!.epsilon.push(to);
        return;
      }
      case "choice":
        for (const option of expression.options) this.#build(option, from, to);
        return;
      case "repeat": {
        let at = this.#state();
        nfa[from]!.epsilon.push(at);
        for (let count = 0; count < (expression.max ?? expression.min); count++) {
          if (count >= expression.min) nfa[at]!.epsilon.push(to);
          const next = this.#state();
          this.#build(expression.body, at, next);
          at = next;
        }
        nfa[at]!.epsilon.push(to);
        if (expression.max === null) {
          const again = this.#state();
          this.#build(expression.body, at, again);
          nfa[again]!.epsilon.push(at);
        }
        return;
      }
      case "dfa": {
        const ids = expression.dfa.states.map(() => this.#state());
        nfa[from]!.epsilon.push(ids[0]!);
        for (const [index, { final, edges }] of expression.dfa.states.entries()) {
          const { edges: out, epsilon } = nfa[ids[index]!]!;
          for (const { set, target } of edges) out.push({ set, target: ids[target]! });
          if (final) epsilon.push(to);
        }
        return;
      }
      case "assertion":
        nfa[from]!.asserted.push({ assertion: expression.assertion, target: to });
        return;
      case "rule":
      case "graph":
      case "mark":
      case "dispatch":
        throw new Error(`${expression.kind} cannot be determinised`);
      default:
        expression satisfies never;
    }
  }
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

  /** One of the letter's code points. */
  point(letter: number): number {
    return this.#ranges[letter]![0]![0];
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
