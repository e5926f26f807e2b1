// Joins what many alternatives begin with. Hundreds of them may start alike: the names of an object's optional properties,
// the members of a union. A matcher would have to follow all of them at once. Here they get a joined state instead, which
// has the edges of all of them. Where one byte, or a call of one rule, leads from there to many states, these are joined
// in turn, until few alternatives are left.
//
// Links are followed from their ends. So the properties of an object, each of which may be skipped, share what they have
// in common with those that come after them: the automaton grows with the length of the names, not with the square of
// their number.

import { type OutgoingEdges, type Rows, rowsOf, type StateGraph } from "./state-graph.ts";

/** So few alternatives are left to the matcher. */
const FEW = 8;
/** Edges that may be looked at. Once they are used up, the matcher has to follow what is left. */
const MAX_WORK = 4_000_000;

export function joinBeginnings(graph: StateGraph): void {
  new Joiner(graph).run();
}

class Joiner {
  readonly #graph: StateGraph;
  /** Triples low byte, high byte, target. */
  readonly #bytes: Rows;
  /** Pairs rule, return state. */
  readonly #calls: Rows;
  readonly #links: Rows;
  readonly #size: number;
  /** What the joined states stand for: other states, and how many alternatives that makes. */
  readonly #parts = new Map<number, readonly number[]>();
  readonly #weights = new Map<number, number>();
  /** By parts. */
  readonly #known = new Map<string, number>();
  /** The new edges of joined states, and of those that lead to them. */
  readonly #edges = new Map<number, OutgoingEdges>();
  /** Joined states that have no edges yet. */
  #pending: number[] = [];
  #work = 0;

  constructor(graph: StateGraph) {
    this.#graph = graph;
    this.#size = graph.size;
    this.#bytes = rowsOf(graph.size, graph.byteEdges, 4);
    this.#calls = rowsOf(graph.size, graph.callEdges, 3);
    this.#links = rowsOf(graph.size, graph.epsilonEdges, 2);
  }

  run(): void {
    for (const state of this.#fromTheEnds()) {
      if (this.#work > MAX_WORK) break;
      const fewEdges = lengthOf(this.#bytes, state) <= 3 * FEW && lengthOf(this.#calls, state) <= 2 * FEW;
      if (fewEdges && lengthOf(this.#links, state) === 0) continue;
      const edges = this.#joinedEdges([state]);
      if (this.#pending.length > 0) this.#edges.set(state, edges);
      for (let next = this.#pending.pop(); next !== undefined; next = this.#pending.pop()) {
        this.#edges.set(next, this.#joinedEdges(this.#parts.get(next)!));
      }
    }
    this.#graph.replaceEdges(this.#edges);
  }

  /** All states, each after those it links to. */
  #fromTheEnds(): number[] {
    const { offsets, values } = this.#links;
    const order: number[] = [];
    /** By state: its next link that has not been followed. */
    const next = offsets.slice();
    const seen = new Uint8Array(this.#size);
    const path: number[] = [];
    for (let first = 0; first < this.#size; first++) {
      if (seen[first] === 0) path.push(first);
      seen[first] = 1;
      for (let state = path.at(-1); state !== undefined; state = path.at(-1)) {
        if (next[state]! === offsets[state + 1]!) order.push(path.pop()!);
        else {
          const target = values[next[state]!++]!;
          if (seen[target] === 0) path.push(target);
          seen[target] = 1;
        }
      }
    }
    return order;
  }

  /** The edges of all these states together, with joined targets where they have many in common. */
  #joinedEdges(states: readonly number[]): OutgoingEdges {
    const { bytes, calls, final } = this.#edgesOf(states);
    return { bytes: this.#joinedBytes(bytes), calls: this.#joinedCalls(calls), final };
  }

  /** Links are followed. Nothing is joined yet. */
  #edgesOf(states: readonly number[]): OutgoingEdges {
    const bytes: number[] = [];
    const calls: number[] = [];
    let final = false;
    const closed = new Set(states);
    for (const state of closed) {
      const made = this.#edges.get(state);
      const parts = made === undefined ? this.#parts.get(state) : undefined;
      for (const part of parts ?? []) closed.add(part);
      if (parts !== undefined) continue;
      const ownBytes = made?.bytes ?? rowOf(this.#bytes, state);
      const ownCalls = made?.calls ?? rowOf(this.#calls, state);
      for (const each of ownBytes) bytes.push(each);
      for (const each of ownCalls) calls.push(each);
      final ||= made?.final ?? this.#graph.finals.has(state);
      if (made === undefined) for (const target of rowOf(this.#links, state)) closed.add(target);
      this.#work += 1 + ownBytes.length + ownCalls.length;
    }
    return { bytes, calls, final };
  }

  #joinedBytes(edges: readonly number[]): readonly number[] {
    const borders = new Uint8Array(257);
    for (let i = 0; i < edges.length; i += 3) {
      borders[edges[i]!] = 1;
      borders[edges[i + 1]! + 1] = 1;
    }
    /** By first byte of a run that all edges treat alike: where they lead. */
    const runs = new Map<number, Set<number>>();
    for (let i = 0; i < edges.length; i += 3) {
      for (let byte = edges[i]!; byte <= edges[i + 1]!; byte++) {
        if (borders[byte] === 0) continue;
        const targets = runs.get(byte);
        if (targets) targets.add(edges[i + 2]!);
        else runs.set(byte, new Set([edges[i + 2]!]));
        this.#work++;
      }
    }
    const joined: number[] = [];
    /** By target: its last edge, which grows if the next run leads there, too. */
    const last = new Map<number, number>();
    for (const low of [...runs.keys()].sort((a, b) => a - b)) {
      let high = low;
      while (borders[high + 1] === 0) high++;
      for (const target of this.#join(runs.get(low)!)) {
        const edge = last.get(target);
        if (edge !== undefined && joined[edge + 1] === low - 1) joined[edge + 1] = high;
        else {
          last.set(target, joined.length);
          joined.push(low, high, target);
        }
      }
    }
    return joined;
  }

  #joinedCalls(edges: readonly number[]): readonly number[] {
    const byRule = new Map<number, Set<number>>();
    for (let i = 0; i < edges.length; i += 2) {
      const returns = byRule.get(edges[i]!);
      if (returns) returns.add(edges[i + 1]!);
      else byRule.set(edges[i]!, new Set([edges[i + 1]!]));
    }
    return [...byRule].flatMap(([rule, returns]) => [...this.#join(returns)].flatMap((target) => [rule, target]));
  }

  /** The states themselves if they are few, else the state that stands for all of them. */
  #join(targets: ReadonlySet<number>): Iterable<number> {
    if (targets.size === 1 || this.#work > MAX_WORK) return targets;
    let weight = 0;
    let marked = 0;
    for (const target of targets) {
      weight += this.#weights.get(target) ?? 1;
      if (this.#graph.marked.has(target)) marked++;
    }
    // Brackets, braces and commas with a mark must stay apart from those without.
    if (weight <= FEW || (marked > 0 && marked < targets.size)) return targets;
    const parts = [...targets].sort((a, b) => a - b);
    const key = parts.join();
    let state = this.#known.get(key);
    if (state === undefined) {
      state = this.#graph.state();
      this.#known.set(key, state);
      this.#parts.set(state, parts);
      this.#weights.set(state, weight);
      if (marked > 0) this.#graph.marked.add(state);
    }
    if (!this.#edges.has(state)) this.#pending.push(state);
    return [state];
  }
}

function rowOf({ offsets, values }: Rows, state: number): Int32Array {
  return values.subarray(offsets[state]!, offsets[state + 1]!);
}

function lengthOf({ offsets }: Rows, state: number): number {
  return offsets[state + 1]! - offsets[state]!;
}
