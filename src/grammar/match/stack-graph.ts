// The call stacks of a matcher as a shared graph, and the closure over calls and returns at one position. A node stands
// for the calls of one rule at one position. Its edges say where such a call returns to. Nodes are interned by their
// edges, so equal histories share a node: a list of any length returns to the same configuration.

import type { Program } from "../automaton/program.ts";
import { BrokenConstraintError } from "./sequence-constraint.ts";
import type { StateSet, StateSets } from "./state-sets.ts";

export class StackNode {
  readonly id: number;
  readonly returns: number[] = [];
  readonly parents: StackNode[] = [];
  /** The closure of its own position is not complete yet. */
  fresh = true;
  popped = false;
  visiting = false;
  cyclic = false;
  canonical: StackNode | null = null;
  /** The last closing that came here, and the states it has found so far. */
  closing = 0;
  set: StateSet | null = null;

  constructor(id: number) {
    this.id = id;
  }
}

/** States, each with the stack below it: two lists of the same length. */
export interface Items {
  readonly sets: readonly StateSet[];
  readonly nodes: readonly StackNode[];
}

interface Closed extends Items {
  /** The whole text may end here. */
  readonly accepting: boolean;
  /** The frame may end here and return to its unknown caller (see token-masks.ts). */
  readonly escaped: boolean;
}

/** More than a program has states, so that node.id * STATE_RADIX + state numbers the pair. */
const STATE_RADIX = 2 ** 19;
/**
 * Most work of one closure. It depends on the grammar and the text alone, so the same text always has the same verdict.
 * A union of thousands of alternatives stays far below. A grammar that doubles its readings with every byte does not.
 */
const MAX_WORK = 100_000;

export class StackGraph {
  /** The caller of the root: returning there completes the text. */
  readonly bottom: StackNode;
  /** A caller of which nothing is known. */
  readonly unknown: StackNode;
  readonly #program: Program;
  readonly #sets: StateSets;
  readonly #spend: (work: number) => void;
  #closing = 0;
  #interned = new Map<string, StackNode>();
  #nextId = 0;

  constructor(program: Program, sets: StateSets, spend: (work: number) => void) {
    this.#program = program;
    this.#sets = sets;
    this.#spend = spend;
    this.bottom = this.#special();
    this.unknown = this.#special();
  }

  forget(): void {
    this.#interned.clear();
  }

  /** Finds all items reachable without consuming a byte. Returns those that can consume one, at most one per node. */
  close(kernel: Items): Closed {
    if (kernel.sets.length === 1 && kernel.sets[0]!.settled) return { ...kernel, accepting: false, escaped: false };
    const { starts, tails } = this.#program;
    const closing = ++this.#closing;
    /** Sets of a node grow: its last entry holds all of them. */
    const sets: StateSet[] = [];
    const nodes: StackNode[] = [];
    let work = 0;
    const add = (set: StateSet, node: StackNode): void => {
      work++;
      const all = node.closing === closing ? this.#sets.union(node.set!, set) : set;
      if (node.closing === closing && all === node.set) return;
      node.closing = closing;
      node.set = all;
      sets.push(all);
      nodes.push(node);
    };
    const link = (called: StackNode, returnTo: number, parent: StackNode): void => {
      work += 1 + (called.returns.length >> 4);
      for (let i = 0; i < called.returns.length; i++) {
        if (called.returns[i] === returnTo && called.parents[i] === parent) return;
      }
      called.returns.push(returnTo);
      called.parents.push(parent);
      if (called.popped) add(this.#sets.single(returnTo), parent);
    };
    const called = new Map<number, StackNode>();
    let accepting = false;
    let escaped = false;
    for (const [item, set] of kernel.sets.entries()) add(set, kernel.nodes[item]!);
    for (let item = 0; item < sets.length; item++) {
      if (work > MAX_WORK) throw new BrokenConstraintError("The grammar is too ambiguous to follow.");
      const { final, calls } = sets[item]!;
      const node = nodes[item]!;
      if (node.set !== sets[item]) continue;
      if (final) {
        if (node === this.bottom) accepting = true;
        else if (node === this.unknown) escaped = true;
        if (node.fresh) node.popped = true;
        for (let i = 0; i < node.returns.length; i++) add(this.#sets.single(node.returns[i]!), node.parents[i]!);
      }
      for (let i = 0; i < calls.length; i += 2) {
        const rule = calls[i]!;
        const returnTo = calls[i + 1]!;
        let target = called.get(rule);
        if (!target) {
          target = new StackNode(this.#nextId++);
          called.set(rule, target);
          add(this.#sets.single(starts[rule]!), target);
        }
        // A call in tail position returns straight to the caller's callers: right recursion needs no growing stack.
        if (tails[returnTo] && !node.fresh && node.returns.length > 0) {
          for (let k = 0; k < node.returns.length; k++) link(target, node.returns[k]!, node.parents[k]!);
        } else {
          link(target, returnTo, node);
        }
      }
    }
    for (const node of called.values()) {
      this.#resolve(node);
      work += node.returns.length;
    }
    this.#spend(work);
    const found = new Map<StackNode, StateSet>();
    for (const [item, set] of sets.entries()) {
      const node = nodes[item]!;
      if (node.set !== set || set.states.length === 0) continue;
      const twin = node.canonical ?? node;
      const before = found.get(twin);
      found.set(twin, before === undefined ? set : this.#sets.union(before, set));
    }
    const ordered = [...found].sort(([a], [b]) => a.id - b.id);
    return { sets: ordered.map(([, set]) => set), nodes: ordered.map(([node]) => node), accepting, escaped };
  }

  /** The same items, but where a call can only end, the items that it returns to. At most one per node. */
  returned(kernel: Items): Items {
    if (!kernel.sets.some(endsOnly)) return kernel;
    const found = new Map<StackNode, StateSet>();
    const ended = new Set<StackNode>();
    let work = 0;
    const add = (set: StateSet, node: StackNode): void => {
      work++;
      const { returns, parents } = node;
      if (!endsOnly(set) || returns.length === 0) {
        const before = found.get(node);
        found.set(node, before === undefined ? set : this.#sets.union(before, set));
      } else if (!ended.has(node)) {
        ended.add(node);
        for (let i = 0; i < returns.length; i++) add(this.#sets.single(returns[i]!), parents[i]!);
      }
    };
    for (const [item, set] of kernel.sets.entries()) add(set, kernel.nodes[item]!);
    this.#spend(work);
    const ordered = [...found].sort(([a], [b]) => a.id - b.id);
    return { sets: ordered.map(([, set]) => set), nodes: ordered.map(([node]) => node) };
  }

  /** The interned twin of a node made at this position. Nodes on a cycle (left recursion) stay themselves. */
  #resolve(node: StackNode): StackNode {
    if (node.canonical || !node.fresh) return node.canonical ?? node;
    if (node.visiting) {
      node.cyclic = true;
      return node;
    }
    node.visiting = true;
    for (let i = 0; i < node.parents.length; i++) node.parents[i] = this.#resolve(node.parents[i]!);
    node.visiting = false;
    node.canonical = node.cyclic ? node : this.#intern(node);
    node.fresh = false;
    return node.canonical;
  }

  #intern(node: StackNode): StackNode {
    const key = node.returns
      .map((returnTo, i) => node.parents[i]!.id * STATE_RADIX + returnTo)
      .sort((a, b) => a - b)
      .join(" ");
    const known = this.#interned.get(key);
    if (known) return known;
    this.#interned.set(key, node);
    return node;
  }

  #special(): StackNode {
    const node = new StackNode(this.#nextId++);
    node.fresh = false;
    return node;
  }
}

/** Nothing can follow in the rule. */
function endsOnly({ final, states, calls }: StateSet): boolean {
  return final && states.length === 0 && calls.length === 0;
}
