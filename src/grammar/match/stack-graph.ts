// The call stacks of a matcher as a shared graph, and the closure over links, calls and returns at one position. A node
// stands for the calls of one rule at one position. Its edges say where such a call returns to. Nodes are interned by
// their edges, so equal histories share a node: a list of any length returns to the same configuration.

import type { Program } from "../automaton/program.ts";

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

  constructor(id: number) {
    this.id = id;
  }
}

/** More than a program has states, so that node.id * STATE_RADIX + state numbers the pair. */
export const STATE_RADIX = 2 ** 19;
/** Work between two checks of the allowance, so that a closure that grows too large is stopped early. */
const WORK_PER_CHECK = 1000;

export class StackGraph {
  /** The caller of the root: returning there completes the text. */
  readonly bottom: StackNode;
  /** A caller of which nothing is known. */
  readonly unknown: StackNode;
  readonly #program: Program;
  readonly #spend: (work: number) => void;
  #interned = new Map<string, StackNode>();
  #nextId = 0;

  constructor(program: Program, spend: (work: number) => void) {
    this.#program = program;
    this.#spend = spend;
    this.bottom = this.#special();
    this.unknown = this.#special();
  }

  forget(): void {
    this.#interned.clear();
  }

  /** Finds all items reachable without consuming a byte. Returns those that can consume one. */
  close(
    kernelStates: readonly number[],
    kernelNodes: readonly StackNode[],
  ): { states: number[]; nodes: StackNode[]; accepting: boolean; escaped: boolean } {
    const { epsilonOffsets, epsilonEdges, callOffsets, callEdges, finals, tails, starts, byteOffsets } = this.#program;
    const states: number[] = [];
    const nodes: StackNode[] = [];
    const seen = new Set<number>();
    let work = 0;
    const add = (state: number, node: StackNode): void => {
      work++;
      const key = node.id * STATE_RADIX + state;
      if (seen.has(key)) return;
      seen.add(key);
      states.push(state);
      nodes.push(node);
    };
    const link = (called: StackNode, returnTo: number, parent: StackNode): void => {
      work += 1 + (called.returns.length >> 4);
      for (let i = 0; i < called.returns.length; i++) {
        if (called.returns[i] === returnTo && called.parents[i] === parent) return;
      }
      called.returns.push(returnTo);
      called.parents.push(parent);
      if (called.popped) add(returnTo, parent);
    };
    const called = new Map<number, StackNode>();
    let accepting = false;
    let escaped = false;
    for (let i = 0; i < kernelStates.length; i++) add(kernelStates[i]!, kernelNodes[i]!);
    for (let item = 0; item < states.length; item++) {
      if (work > WORK_PER_CHECK) {
        this.#spend(work);
        work = 0;
      }
      const state = states[item]!;
      const node = nodes[item]!;
      for (let i = epsilonOffsets[state]!; i < epsilonOffsets[state + 1]!; i++) add(epsilonEdges[i]!, node);
      if (finals[state]) {
        if (node === this.bottom) accepting = true;
        else if (node === this.unknown) escaped = true;
        if (node.fresh) node.popped = true;
        for (let i = 0; i < node.returns.length; i++) add(node.returns[i]!, node.parents[i]!);
      }
      for (let i = callOffsets[state]!; i < callOffsets[state + 1]!; i += 2) {
        const rule = callEdges[i]!;
        const returnTo = callEdges[i + 1]!;
        let target = called.get(rule);
        if (!target) {
          target = new StackNode(this.#nextId++);
          called.set(rule, target);
          add(starts[rule]!, target);
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
    const consuming = { states: [] as number[], nodes: [] as StackNode[], accepting, escaped };
    for (let item = 0; item < states.length; item++) {
      const state = states[item]!;
      if (byteOffsets[state] === byteOffsets[state + 1]) continue;
      consuming.states.push(state);
      consuming.nodes.push(nodes[item]!.canonical ?? nodes[item]!);
    }
    return consuming;
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
